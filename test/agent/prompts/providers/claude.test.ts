// Claude Code: the command line and the events of recorded output.
import t from 'tap'
import { claude } from '../../../../agent/prompts/providers/claude.ts'
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
const SESSION = '80c954d5-66af-4199-b482-5b0833b2a68a'
const recorded = (name: string) => readRecordedLines(`claude-${name}`)
/** Without the session, which differs in each recording. */
const eventsOf = (name: string) => summarize(mapLines(claude, recorded(name)).events).slice(1)

t.test('the command line', async (t) => {
  const fixed = ['-p', '--output-format', 'stream-json', '--verbose']
  const env = { CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1', CLAUDE_CODE_TMPDIR: options.tmpDir }
  t.strictSame(claude.buildCommand(options), {
    args: [...fixed, '--permission-mode', 'acceptEdits'],
    env,
  })
  const all = { ...options, model: selectModel('opus[1m]'), effort: 'low', auto: true } as const
  t.strictSame(claude.buildCommand({ ...all, sessionId: SESSION }), {
    args: [
      ...fixed,
      ...['--model', 'opus[1m]', '--effort', 'low'],
      ...['--dangerously-skip-permissions', '--resume', SESSION],
    ],
    env,
  })
  t.strictSame(claude.buildCommand({ ...all, isRoot: true }).env, { ...env, IS_SANDBOX: '1' })
  t.strictSame(claude.buildCommand({ ...options, isRoot: true }).env, env)
})

t.test('a backend gets its own credential and never the key of Anthropic', async (t) => {
  const build = (model: string, env: Record<string, string>) =>
    claude.buildCommand({ ...options, model: selectModel(model), env })
  const keys = { ANTHROPIC_API_KEY: 'a', OPENROUTER_API_KEY: 'o', DEEPSEEK_API_KEY: 'd' }
  const openrouter = build('openrouter/anthropic/claude-sonnet-5', keys)
  t.match(openrouter.args.join(' '), '--model anthropic/claude-sonnet-5 ')
  t.match(openrouter.env, {
    ANTHROPIC_BASE_URL: 'https://openrouter.ai/api',
    ANTHROPIC_AUTH_TOKEN: 'o',
    ANTHROPIC_API_KEY: '',
    CLAUDE_CODE_USE_BEDROCK: '',
  })
  t.match(build('deepseek/deepseek-chat', keys).env, {
    ANTHROPIC_BASE_URL: 'https://api.deepseek.com/anthropic',
    ANTHROPIC_AUTH_TOKEN: 'd',
    ANTHROPIC_API_KEY: '',
  })
  const bedrock = build('amazon-bedrock/eu.anthropic.claude-sonnet-5-v1:0', keys)
  t.match(bedrock.args.join(' '), '--model eu.anthropic.claude-sonnet-5-v1:0 ')
  t.equal(bedrock.env.CLAUDE_CODE_USE_BEDROCK, '1')
  t.notOk('ANTHROPIC_BASE_URL' in bedrock.env)
})

t.test('a prompt is not a command of Claude Code', async (t) => {
  t.equal(claude.encodePrompt('/clear'), ' /clear')
  for (const prompt of ['fix /etc/hosts', ' /clear', '\n/clear', '!ls', '#note'])
    t.equal(claude.encodePrompt(prompt), prompt)
})

t.test('a tool call and an answer', async (t) => {
  const { events, state } = mapLines(claude, recorded('tool-call'))
  t.strictSame(summarize(events), [
    `session ${state.sessionId}`,
    'tool Bash {"command":"echo hi; false","description":"Test"}',
    'tool_result Bash Exit code 1\nhi',
    'reasoning I consider.',
    'text Hello from the model.',
    'usage 22 input tokens, 14 output tokens, 0.000368 USD',
    'done',
  ])
  t.strictSame(state.outcome, { status: 'done' })
  t.equal(state.hasContent, true)
})

t.test('a retry without a response says what to check', (t) => {
  const retry = (fields: object) =>
    mapLines(claude, [
      { type: 'system', subtype: 'api_retry', attempt: 1, max_retries: 10, retry_delay_ms: 522, ...fields },
    ])
  t.match(summarize(retry({ error_status: null, error: 'unknown' }).events), [
    /^notice Retry 1 of 10 in 522 ms: the server of the model did not respond\..*ANTHROPIC_BASE_URL/,
  ])
  t.match(summarize(retry({ error_status: null, error: 'overloaded' }).events), [/ms: overloaded$/])
  t.end()
})

t.test('a failure is reported once, in spite of the subtype "success"', async (t) => {
  const { events, state } = mapLines(claude, recorded('failure'))
  t.match(summarize(events).slice(1), [
    'notice Retry 1 of 1 in 505 ms: HTTP 500, server_error',
    /^error API Error: 500 broken/,
  ])
  t.equal(events.length, 3)
  t.match(state.outcome, { status: 'failed', message: /500 broken/ })
  t.equal(state.hasContent, false)
})

t.test('without a sign-in', async (t) => {
  t.strictSame(eventsOf('not-signed-in'), ['error Not logged in · Please run /login'])
})

t.test('a run that is killed after its error has failed', async (t) => {
  const { state } = mapLines(claude, recorded('failure').slice(0, -1))
  t.equal(state.outcome, null)
  t.match(claude.resolveUnfinished(state), { status: 'failed', message: /500 broken/ })
  const continued = mapLines(claude, [
    ...recorded('failure').slice(0, -1),
    ...recorded('tool-call').slice(0, -1),
  ])
  t.equal(claude.resolveUnfinished(continued.state), null, 'Claude Code has continued after the error')
})

t.test('a denied permission is a notice, and the run continues', async (t) => {
  t.strictSame(eventsOf('permission-denied').slice(1, 4), [
    'notice This command requires approval',
    'tool_result Bash This command requires approval',
    'text without',
  ])
})

t.test('an interrupted run is not done', async (t) => {
  const { events, state } = mapLines(claude, recorded('interrupted'))
  t.strictSame(summarize(events).slice(1), [
    'text partial ',
    'notice [Request interrupted by user]',
    'error Claude Code was interrupted (aborted_streaming).',
  ])
  t.equal(state.outcome?.status, 'failed')
})

t.test('of several results, the last one counts', async (t) => {
  const lines = recorded('background-agent')
  const { events, state } = mapLines(claude, lines)
  t.strictSame(state.outcome, { status: 'done' })
  t.equal(events.filter(({ type }) => type === 'session').length, 1, 'the session is repeated')
  const failed = { type: 'result', subtype: 'error_during_execution', is_error: true, errors: ['a', 'b'] }
  t.strictSame(mapLines(claude, [...lines, failed]).state.outcome, { status: 'failed', message: 'a\nb' })
  t.strictSame(mapLines(claude, [failed, ...lines]).state.outcome, { status: 'done' })
})

t.test('the error of a sub-agent does not fail the run', async (t) => {
  const line = {
    type: 'assistant',
    error: 'server_error',
    parent_tool_use_id: 'call_1',
    message: { content: [{ type: 'text', text: 'broken' }] },
  }
  const { events, state } = mapLines(claude, [line])
  t.strictSame(summarize(events), ['notice broken'])
  t.equal(claude.resolveUnfinished(state), null)
})

t.test('a result without a message has its text', async (t) => {
  const { events } = mapLines(claude, [{ type: 'result', subtype: 'success', result: 'Total cost: 0' }])
  t.strictSame(summarize(events), ['text Total cost: 0', 'done'])
})

t.test('any lines', async () => {
  checkAnyLines(claude, [
    ...recorded('tool-call'),
    ...recorded('failure'),
    ...recorded('permission-denied'),
    ...recorded('background-agent'),
  ])
})

t.test('the state stays bounded with many unfinished tool calls', async (t) => {
  const [call] = recorded('tool-call').slice(1)
  const lines = Array.from({ length: 500 }, (_, index) =>
    JSON.parse(JSON.stringify(call).replaceAll(/"call_\d+_\d+"/g, `"call_${index}"`)),
  )
  const { state } = mapLines(claude, lines)
  t.ok(JSON.stringify(state).length < 4096)
})
