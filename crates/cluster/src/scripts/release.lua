-- Lets go of messages that this process has claimed, at once or later.
-- KEYS: one for each message. ARGV: process, when (ms; 0 for at once).
for _, key in ipairs(KEYS) do
  if redis.pcall('GET', key) == ARGV[1] then
    if ARGV[2] == '0' then redis.call('DEL', key) else redis.call('PEXPIRE', key, ARGV[2]) end
  end
end
return 0
