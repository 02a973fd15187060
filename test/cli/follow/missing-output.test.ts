// Reports about output that the box has discarded: their wording and how often they appear.
import t from 'tap'
import { createMissingOutputReporter } from '../../../cli/follow/missing-output.ts'

t.test('reports missing output at most once a second', async (t) => {
  const messages: string[] = []
  let now = 0
  const reporter = createMissingOutputReporter(
    'fig',
    (message) => messages.push(message),
    () => now,
  )
  reporter.report('stdout', 10)
  t.same(messages, ['10 bytes of stdout before this point are missing: fig has discarded them.'], 'first')
  for (; now < 999; now += 111) reporter.report('stdout', 1)
  reporter.report('stderr', 5)
  t.equal(messages.length, 1)
  now = 1000
  reporter.report('stdout', 1)
  t.same(messages.slice(1), [
    '10 bytes of stdout in 10 gaps before this point are missing: fig has discarded them.',
    '5 bytes of stderr before this point are missing: fig has discarded them.',
  ])
  reporter.report('stdout', 7)
  reporter.flush()
  t.same(messages.slice(3), ['7 bytes of stdout before this point are missing: fig has discarded them.'])
  reporter.flush()
  t.equal(messages.length, 4)
})
