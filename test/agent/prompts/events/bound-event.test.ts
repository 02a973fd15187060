// An event as JSON has at most MAX_PROMPT_EVENT_BYTES.
import t from 'tap'
import { boundEvent } from '../../../../agent/prompts/events/bound-event.ts'
import type { PromptEvent } from '../../../../shared/api/prompts.ts'
import { MAX_PROMPT_EVENT_BYTES } from '../../../../shared/limits.ts'

const create = (fields: Partial<PromptEvent>): PromptEvent => ({
  seq: 1,
  at: '2030-01-01T00:00:00.000Z',
  type: 'text',
  text: null,
  tool: null,
  raw: null,
  ...fields,
})
const MiB = 1024 * 1024

t.test('a small event is unchanged', async (t) => {
  const event = create({ text: 'a', tool: { name: 'x', input: { a: 1 } }, raw: { b: 2 } })
  const bounded = boundEvent(event)
  t.same(bounded.event, event)
  t.equal(bounded.bytes, Buffer.byteLength(JSON.stringify(event)))
})

t.test('a large event loses raw and the input of its tool', async (t) => {
  const large = '\uFFFD'.repeat(MiB)
  const { event, bytes } = boundEvent(create({ text: 'a', tool: { name: 'x', input: large }, raw: large }))
  t.match(event, { text: 'a', tool: { name: 'x', input: null }, raw: null })
  t.ok(bytes < 1000)
})

t.test('a large text is truncated, whatever its characters need as JSON', async (t) => {
  for (const character of ['\0', '\uFFFD', '😀', 'a', '"']) {
    const { event, bytes } = boundEvent(create({ text: character.repeat(4 * MiB), raw: {} }))
    t.ok(bytes <= MAX_PROMPT_EVENT_BYTES)
    t.equal(Buffer.byteLength(JSON.stringify(event)), bytes)
    t.ok((event.text ?? '').isWellFormed())
    t.match(event, { text: /…$/, raw: null })
  }
})

t.test('the name of a tool is truncated', async (t) => {
  const { event } = boundEvent(create({ tool: { name: 'n'.repeat(5000), input: 1 } }))
  t.equal(event.tool?.name.length, 1024)
})
