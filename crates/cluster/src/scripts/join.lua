-- Numbers a session, unless newcomers wait; remembers which process has the newest.
-- KEYS: at, turn. ARGV: process, share (1 or 0), generation or 0, life of at (ms), pause after a takeover (ms),
-- how far ahead a generation may be (us).
-- Returns {generation as text, pause in ms}; one of the two is 0.
local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'hash' and kind ~= 'none' then redis.call('DEL', KEYS[1]) end
local at = redis.call('HMGET', KEYS[1], 'generation', 'share', 'process')
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local last = tonumber(at[1] or '') or 0
if last < 0 or last ~= last or last > now + tonumber(ARGV[6]) then last = 0 end
local generation = tonumber(ARGV[3])
if generation == 0 then
  local pause = redis.call('PTTL', KEYS[2])
  if pause > 0 then return {'0', pause} end
  generation = math.max(now, last + 1)
  if at[3] and not (at[2] == '1' and ARGV[2] == '1') then
    redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[5])
  end
end
if last <= generation then
  redis.call('HSET', KEYS[1], 'generation', string.format('%.0f', generation), 'share', ARGV[2], 'process', ARGV[1])
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
end
return {string.format('%.0f', generation), 0}
