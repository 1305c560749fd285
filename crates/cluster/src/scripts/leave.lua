-- The agent is no longer in this process. The generation stays for a while: the next one is higher.
-- KEYS: at. ARGV: process.
if redis.call('TYPE', KEYS[1]).ok == 'hash' and redis.call('HGET', KEYS[1], 'process') == ARGV[1] then
  redis.call('HDEL', KEYS[1], 'process')
end
return 0
