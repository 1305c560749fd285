-- Takes one message out of a bucket: the generic cell rate algorithm. The key holds when the bucket would be full.
-- KEYS: bucket. ARGV: time of one message (us), of a full bucket (us).
-- Returns how long until one fits (us), as text; 0 if it was taken.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local one, all = tonumber(ARGV[1]), tonumber(ARGV[2])
local full = redis.pcall('GET', KEYS[1])
full = type(full) == 'string' and tonumber(full) or now
-- A clock that was set back, or somebody's mistake, locks nobody out.
if full ~= full or full < now then
  full = now
elseif full > now + all then
  full = now + all
  redis.call('SET', KEYS[1], string.format('%.0f', full), 'PX', math.ceil(all / 1000) + 1)
end
local next = full + one
local wait = next - all - now
if wait > 0.5 then return string.format('%.0f', wait) end
redis.call('SET', KEYS[1], string.format('%.0f', next), 'PX', math.ceil((next - now) / 1000) + 1)
return '0'
