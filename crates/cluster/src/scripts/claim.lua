-- Claims messages that no other process has.
-- KEYS: one for each message. ARGV: process, then the hold (ms) of each.
-- Returns for each message that is taken its number in KEYS and the rest of its hold (ms).
local taken = {}
for index, key in ipairs(KEYS) do
  local holder = redis.pcall('GET', key)
  local rest = -1
  if type(holder) == 'string' and holder ~= ARGV[1] then rest = redis.call('PTTL', key) end
  if rest > 0 then
    taken[#taken + 1] = index
    taken[#taken + 1] = rest
  else
    redis.call('SET', key, ARGV[1], 'PX', ARGV[index + 1])
  end
end
return taken
