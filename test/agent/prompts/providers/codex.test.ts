// Codex: the command line and the events of recorded output.
import t from 'tap'
import { codex } from '../../../../agent/prompts/providers/codex.ts'
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
const SESSION = '01a207e1-51c1-73d3-a5ed-3f1b37713048'
const recorded = (name: string) => readRecordedLines(`codex-${name}`)

t.test('the command line', async (t) => {
  const fixed = ['exec', '--json', '--skip-git-repo-check', '--disable', 'plugins']
  const analytics = ['-c', 'analytics.enabled=false']
  t.strictSame(codex.buildCommand(options), {
    args: [...fixed, ...analytics, '-s', 'workspace-write', '-'],
    env: {},
  })
  const model = selectModel('gpt-6')
  t.strictSame(
    codex.buildCommand({ ...options, model, effort: 'high', auto: true, sessionId: SESSION }).args,
    [
      ...[...fixed, ...analytics],
      ...['-m', 'gpt-6', '-c', 'model_reasoning_effort=high'],
      ...['--dangerously-bypass-approvals-and-sandbox', 'resume', SESSION, '-'],
    ],
  )
})

t.test('OPENAI_API_KEY is passed under the name that codex reads, without a sign-in', async (t) => {
  const variablesFor = (env: Record<string, string>, auth: object | null = null) =>
    codex.credentialVariables({
      model: null,
      env: { HOME: '/home/user', ...env },
      readText: async (path) =>
        auth !== null && path === '/home/user/.codex/auth.json' ? JSON.stringify(auth) : null,
    })
  t.strictSame(await variablesFor({ OPENAI_API_KEY: 'o' }), { CODEX_API_KEY: 'o' })
  t.strictSame(await variablesFor({ OPENAI_API_KEY: 'o', CODEX_API_KEY: 'c' }), {})
  t.strictSame(await variablesFor({ OPENAI_API_KEY: 'o', CODEX_ACCESS_TOKEN: 'c' }), {})
  t.strictSame(await variablesFor({ OPENAI_API_KEY: '' }), {})
  // Codex would use the key instead of the sign-in.
  const signedIn = { OPENAI_API_KEY: null, tokens: { access_token: 'a', refresh_token: 'r' } }
  t.strictSame(await variablesFor({ OPENAI_API_KEY: 'o' }, signedIn), {})
  t.strictSame(await variablesFor({ OPENAI_API_KEY: 'o' }, { OPENAI_API_KEY: 'stored' }), {})
  for (const signedOut of [{}, { OPENAI_API_KEY: null, tokens: null }, { tokens: { access_token: '' } }])
    t.strictSame(await variablesFor({ OPENAI_API_KEY: 'o' }, signedOut), { CODEX_API_KEY: 'o' })
})

t.test('backends', async (t) => {
  const argsFor = (model: string) =>
    codex.buildCommand({ ...options, model: selectModel(model) }).args.join(' ')
  t.match(
    argsFor('amazon-bedrock/openai.gpt-oss-120b'),
    '-c model_provider=amazon-bedrock -m openai.gpt-oss-120b',
  )
  const openrouter = argsFor('openrouter/openai/gpt-6')
  t.match(openrouter, 'env_key="OPENROUTER_API_KEY",wire_api="responses"}')
  t.match(openrouter, '-c model_provider=openrouter -m openai/gpt-6')
})

t.test('a prompt is literal', async (t) => {
  t.equal(codex.encodePrompt('/clear'), '/clear')
})

t.test('a tool call and an answer', async (t) => {
  const { events, state } = mapLines(codex, recorded('tool-call'))
  t.match(events[1], { type: 'notice', text: /Model metadata/ })
  t.strictSame(summarize(events.filter(({ type }) => type !== 'notice')), [
    `session ${state.sessionId}`,
    `tool command_execution {"command":"/bin/bash -lc 'echo hi; false'"}`,
    'tool_result command_execution hi\n',
    'reasoning I consider.',
    'text Hello from the model.',
    'usage 22 input tokens, 14 output tokens',
    'done',
  ])
  t.strictSame(state.outcome, { status: 'done' })
  t.equal(state.hasContent, true)
})

t.test('changes of files and tools of MCP servers', async (t) => {
  const eventsOf = (name: string) =>
    summarize(mapLines(codex, recorded(name)).events).filter((event) => event.startsWith('tool'))
  t.strictSame(eventsOf('file-change'), [
    'tool file_change {"changes":[{"path":"/home/user/a.txt","kind":"add"}]}',
    'tool_result file_change completed',
  ])
  t.strictSame(eventsOf('mcp'), ['tool demo.greet {"name":"you"}', 'tool_result demo.greet hello you'])
})

t.test('a tool whose start was not reported', async (t) => {
  const lines = recorded('file-change').filter(({ type }) => type !== 'item.started')
  const types = mapLines(codex, lines).events.map(({ type }) => type)
  t.match(types.join(' '), 'tool tool_result')
})

t.test('a command without output has its exit code', async (t) => {
  const item = {
    id: 'item_1',
    type: 'command_execution',
    command: 'false',
    aggregated_output: '',
    exit_code: 1,
  }
  const { events } = mapLines(codex, [{ type: 'item.completed', item }])
  t.equal(events.at(-1)?.text, 'exit code 1')
})

t.test('retries are notices, and the failure of the turn is the error', async (t) => {
  const lines = recorded('failure')
  const { events, state } = mapLines(codex, lines)
  const types = events.map(({ type }) => type)
  t.match(types.join(' '), /^session( notice)+ error$/)
  t.match(state.outcome, { status: 'failed', message: /temporary errors/ })
  t.equal(state.hasContent, false)

  const killed = mapLines(codex, lines.slice(0, -1)).state
  t.equal(killed.outcome, null)
  t.match(codex.resolveUnfinished(killed), { status: 'failed', message: /temporary errors/ })
  const retrying = mapLines(codex, lines.slice(0, -2)).state
  t.equal(codex.resolveUnfinished(retrying), null, 'the exit status decides')
})

t.test('any lines', async () => {
  checkAnyLines(codex, [...recorded('tool-call'), ...recorded('failure'), ...recorded('mcp')])
})
