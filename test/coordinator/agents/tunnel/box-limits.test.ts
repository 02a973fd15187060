// The limits of the messages of one box, with a clock that stands still.
import t from 'tap'
import { createBoxLimits } from '../../../../coordinator/agents/tunnel/box-limits.ts'

const MiB = 1024 * 1024
/** 2 MiB of output as base64, in frames of 16 KiB, each in a message. */
const MESSAGES_OF_LARGEST_RESPONSE = 2 * Math.ceil((2 * MiB * 4) / 3 / (16 * 1024))
const stoppedClock = { now: () => 0 }

t.test('the largest responses to any number of requests are no flood', async (t) => {
  const limits = createBoxLimits(stoppedClock)
  const allowed = Array.from({ length: 1000 }, () => {
    limits.expectResponse('a')
    return limits.allowMessages('a', MESSAGES_OF_LARGEST_RESPONSE)
  })
  t.notOk(allowed.includes(false))
})

t.test('messages that no request has asked for are limited', async (t) => {
  const limits = createBoxLimits(stoppedClock)
  t.ok(limits.allowMessages('a', 20_000))
  t.notOk(limits.allowMessages('a', 1))
  t.ok(limits.allowMessages('b', 1), 'another box has limits of its own')
})
