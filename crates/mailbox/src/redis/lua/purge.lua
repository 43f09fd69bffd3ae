-- Numbers go on: receipts of before must not fit what comes after.
local count = redis.call('LLEN', PENDING) + redis.call('ZCARD', DELAYED) + redis.call('ZCARD', LEASED)
redis.call('UNLINK', PENDING, DELAYED, LEASED, BODIES, SAVED, BELL)
return count
