-- Whoever was to look has gone. ARGV: horizon.
local soon = micros() + tonumber(ARGV[1])
if redis.call('EXISTS', PENDING) == 1 or redis.call('ZCOUNT', DELAYED, '-inf', soon) > 0
    or redis.call('ZCOUNT', LEASED, '-inf', soon) > 0 then
    ring()
end
return 1
