local now = micros()
local function count(key)
    local due = redis.call('ZCOUNT', key, '-inf', now)
    return due, redis.call('ZCARD', key) - due
end
local back, delayed = count(DELAYED)
local expired, leased = count(LEASED)
return {redis.call('LLEN', PENDING) + back + expired, delayed, leased}
