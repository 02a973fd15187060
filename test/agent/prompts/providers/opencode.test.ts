// OpenCode: the command line and the events of recorded output.
import t from 'tap'
import { opencode } from '../../../../agent/prompts/providers/opencode.ts'
import { selectModel } from '../../../../agent/prompts/providers/select-model.ts'
import { checkAnyLines, mapLines, readRecordedLines, summarize } from './mapping.ts'

const options = {
  model: null,
  effort: null,
  auto: false,
  sessionId: null,
  env: {},
  tmpDir: '/state/runs/1/tmp',
  isRoot: false,
}

t.test('the command line', async (t) => {
  const plain = opencode.buildCommand(options)
  t.strictSame(plain.args, ['run', '--format', 'json', '--thinking', '--title', 'run'])
  t.match(plain.env, { TMPDIR: '/state/runs/1/tmp', OPENCODE_DISABLE_AUTOUPDATE: '1' })
  t.strictSame(
    JSON.parse(plain.env.OPENCODE_PERMISSION ?? ''),
    { bash: 'ask', external_directory: 'ask', webfetch: 'ask' },
    'without auto, tools that leave the directory need a permission',
  )
  const full = opencode.buildCommand({
    ...options,
    model: selectModel('openrouter/z-ai/glm'),
    effort: 'high',
    auto: true,
    sessionId: 'ses_1',
  })
  t.strictSame(full.args.slice(6), [
    ...['-m', 'openrouter/z-ai/glm'],
    ...['--variant', 'high'],
    ...['--auto', '-s', 'ses_1'],
  ])
  t.notOk('OPENCODE_PERMISSION' in full.env)
})

t.test('Bedrock uses the files of the AWS tools when no variable selects a credential', async (t) => {
  const model = selectModel('amazon-bedrock/us.anthropic.claude-opus-5-5')
  t.equal(opencode.buildCommand({ ...options, model }).env.AWS_PROFILE, 'default')
  const env = { AWS_BEARER_TOKEN_BEDROCK: 'k' }
  t.equal(opencode.buildCommand({ ...options, model, env }).env.AWS_PROFILE, undefined)
  t.equal(opencode.buildCommand(options).env.AWS_PROFILE, undefined)
})

t.test('a tool call and an answer', async (t) => {
  const { events, state } = mapLines(opencode, readRecordedLines('opencode-tool-call'))
  t.strictSame(summarize(events), [
    'session ses_df830a394ffeWNOzy4edCDkrYd',
    'reasoning I consider.',
    'text Running it.',
    'tool bash {"command":"echo hi; false","description":"d"}',
    'tool_result bash hi\n',
    'usage 10 input tokens, 5 output tokens',
    'reasoning I consider.',
    'text Hello from the model. users=1',
    'usage 10 input tokens, 5 output tokens',
    'done',
  ])
  t.match(state, {
    sessionId: 'ses_df830a394ffeWNOzy4edCDkrYd',
    outcome: { status: 'done' },
    hasContent: true,
  })
})

t.test('a run that ends because a permission was refused has failed', async (t) => {
  const lines = readRecordedLines('opencode-permission-refused')
  const { events, state } = mapLines(opencode, lines)
  t.match(summarize(events).at(-2), /^tool_result bash .*rejected permission/)
  t.equal(state.outcome, null)
  t.match(opencode.resolveUnfinished(state), {
    status: 'failed',
    message: /tool bash needs a permission. Send auto: true/,
  })
  const continued = mapLines(opencode, [...lines, ...readRecordedLines('opencode-tool-call')])
  t.match(continued.state.outcome, { status: 'done' }, 'the run continued after the refusal')
  const stopped = mapLines(opencode, [...lines, { type: 'step_start' }])
  t.equal(opencode.resolveUnfinished(stopped.state), null, 'the exit status decides')
})

t.test('an error is final', async (t) => {
  const { events, state } = mapLines(opencode, readRecordedLines('opencode-failure'))
  t.strictSame(summarize(events).slice(1), ['error Incorrect API key provided'])
  t.strictSame(state.outcome, { status: 'failed', message: 'Incorrect API key provided' })
  t.equal(state.hasContent, false)
})

t.test('the error of an unknown model names the possible causes', async (t) => {
  const { state } = mapLines(opencode, readRecordedLines('opencode-unknown-model'))
  t.match(state.outcome, { status: 'failed', message: /may not know the model/ })
})

t.test('any lines', async () => {
  checkAnyLines(opencode, [
    ...readRecordedLines('opencode-tool-call'),
    ...readRecordedLines('opencode-permission-refused'),
    ...readRecordedLines('opencode-failure'),
  ])
})
