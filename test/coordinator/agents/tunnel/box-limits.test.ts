// The limits of the messages of one box, with a clock that stands still.
import t from 'tap'
import { type BoxLimits, createBoxLimits } from '../../../../coordinator/agents/tunnel/box-limits.ts'

const MiB = 1024 * 1024
/** The events of several prompts, in chunks of 64 KiB. */
const MESSAGES_OF_LARGEST_RESPONSE = (31 * MiB) / (64 * 1024)
const stoppedClock = { now: () => 0 }
const allowMessages = (limits: BoxLimits, count: number) =>
  Array.from({ length: count }, () => limits.allowMessage('a')).every((isAllowed) => isAllowed)

t.test('the largest responses to any number of requests are no flood', async (t) => {
  const limits = createBoxLimits(stoppedClock)
  const allowed = Array.from({ length: 1000 }, () => {
    limits.expectResponse('a')
    return allowMessages(limits, MESSAGES_OF_LARGEST_RESPONSE)
  })
  t.notOk(allowed.includes(false))
})

t.test('messages that no request has asked for are limited', async (t) => {
  const limits = createBoxLimits(stoppedClock)
  t.ok(allowMessages(limits, 20_000))
  t.notOk(limits.allowMessage('a'))
  t.ok(limits.allowMessage('b'), 'another box has limits of its own')
})
