// pi: the command line and the events of recorded output.
import t from 'tap'
import { pi } from '../../../../agent/prompts/providers/pi.ts'
import { selectModel } from '../../../../agent/prompts/providers/select-model.ts'
import { checkAnyLines, mapLines, readRecordedLines, summarize } from './mapping.ts'

const options = {
  model: null,
  effort: null,
  auto: true,
  sessionId: null,
  env: {},
  tmpDir: '/state/runs/1/tmp',
  isRoot: false,
}
const SESSION = '01a207ce-d266-7236-94ba-a7aa4f4f5ac7'

t.test('the command line', async (t) => {
  t.strictSame(pi.buildCommand(options), {
    args: ['--mode', 'json', '-p', '--approve'],
    env: { PI_OFFLINE: '1' },
  })
  const model = selectModel('deepseek/deepseek-chat')
  t.strictSame(pi.buildCommand({ ...options, model, effort: 'low', sessionId: SESSION }).args, [
    ...['--mode', 'json', '-p'],
    ...['--model', 'deepseek/deepseek-chat', '--thinking', 'low'],
    ...['--approve', '--session-id', SESSION],
  ])
  const resume = (version: string) => pi.buildCommand({ ...options, sessionId: SESSION, version }).args.at(-2)
  t.equal(resume('0.74.2'), '--session', 'older versions do not have --session-id')
  for (const version of ['0.76.0', '0.87.1', '1.5.2', 'unknown']) t.equal(resume(version), '--session-id')
})

t.test('a prompt is not a command of pi', async (t) => {
  t.equal(pi.encodePrompt('/review this'), '\u200b/review this')
  const spaced = pi.encodePrompt(' \n/review this')
  t.notOk(spaced.trim().startsWith('/'), 'pi trims the prompt')
  for (const prompt of ['fix /etc/hosts', ' two\n', '!ls', '@file']) t.equal(pi.encodePrompt(prompt), prompt)
})

t.test('a tool call and an answer', async (t) => {
  const { events, state } = mapLines(pi, readRecordedLines('pi-tool-call'))
  t.strictSame(summarize(events), [
    `session ${SESSION}`,
    'reasoning I consider.',
    'text Running it.',
    'usage 10 input tokens, 5 output tokens',
    'tool bash {"command":"echo hi; false"}',
    'tool_result bash hi\n\n\nCommand exited with code 1',
    'reasoning I consider.',
    'text Hello from the model. users=1',
    'usage 10 input tokens, 5 output tokens',
    'done',
  ])
  t.match(state, { sessionId: SESSION, outcome: { status: 'done' }, hasContent: true })
})

t.test('a failure is final after the last retry', async (t) => {
  const { events, state } = mapLines(pi, readRecordedLines('pi-failure-after-retries'))
  t.strictSame(summarize(events).slice(1), [
    'notice Retry 1 of 3 in 2000 ms: 500: {"message":"boom"}',
    'notice Retry 2 of 3 in 4000 ms: 500: {"message":"boom"}',
    'notice Retry 3 of 3 in 8000 ms: 500: {"message":"boom"}',
    'error 500: {"message":"boom"}',
  ])
  t.strictSame(state.outcome, { status: 'failed', message: '500: {"message":"boom"}' })
})

t.test('versions without agent_settled end with agent_end', async (t) => {
  const withoutSettled = (name: string) => {
    const lines = readRecordedLines(name).filter(({ type }) => type !== 'agent_settled')
    const { state } = mapLines(pi, lines)
    t.equal(state.outcome, null)
    return pi.resolveUnfinished(state)
  }
  t.strictSame(withoutSettled('pi-tool-call'), { status: 'done' })
  t.match(withoutSettled('pi-failure-after-retries'), { status: 'failed' })
})

t.test('a run that stops while pi waits for a retry is not finished', async (t) => {
  const lines = readRecordedLines('pi-failure-after-retries')
  const firstRetry = lines.findIndex(({ type }) => type === 'auto_retry_start')
  const { state } = mapLines(pi, lines.slice(0, firstRetry + 1))
  t.equal(state.outcome, null)
  t.equal(pi.resolveUnfinished(state), null)
})

t.test('any lines', async () => {
  checkAnyLines(pi, [...readRecordedLines('pi-tool-call'), ...readRecordedLines('pi-failure-after-retries')])
})
