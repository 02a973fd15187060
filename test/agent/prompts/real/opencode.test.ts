// The real OpenCode with a fake model server: its command line, output and sessions are as the provider expects. A run takes
// several seconds and 600 MB, so each one checks several things.
import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { opencode } from '../../../../agent/prompts/providers/opencode.ts'
import { LIMITS } from '../../../../shared/limits.ts'
import { createCliHome } from '../../../support/coding-agents/create-cli-home.ts'
import { installCodingAgents } from '../../../support/coding-agents/install-coding-agents.ts'
import { userTexts } from '../../../support/model-server/model-request.ts'
import { startModelServer } from '../../../support/model-server/model-server.ts'
import { failure, holdStream, toolCall } from '../../../support/model-server/replies.ts'
import { summarize } from '../providers/mapping.ts'
import { runCli, startCli } from './start-cli.ts'

const agents = await installCodingAgents()
const sha256 = (content: string) => createHash('sha256').update(content).digest('hex')

t.test('OpenCode', { skip: agents.skip }, async (t) => {
  const models = await startModelServer(t)
  const cli = createCliHome(t, 'opencode', models)
  const run = (prompt: string, options: Partial<Parameters<typeof runCli>[2]> = {}) =>
    runCli(t, opencode, { agents, cli, prompt, ...options })
  const lastTexts = () => models.scripted.slice(-1).flatMap(userTexts)

  let sessionId: string | null = null
  await t.test('a prompt of 512 KiB, a tool call and reasoning', async (t) => {
    const line = 'ünïcödé "quoted" \\ \u2028 $HOME `x`\n'
    const prompt = `/init ${line.repeat(LIMITS.promptBytes / Buffer.byteLength(line) - 1)}`
    models.reply(toolCall('bash', { command: 'echo from-tool > file; cat file', description: 'writes' }), {
      reasoning: 'I consider.',
      text: ['The ', 'answer'],
    })
    const { events, state, exitCode, stderr } = await run(prompt)
    sessionId = state.sessionId
    t.ok(sessionId)
    t.equal(exitCode, 0, stderr)
    t.strictSame(summarize(events), [
      `session ${sessionId}`,
      'tool bash {"command":"echo from-tool > file; cat file","description":"writes"}',
      'tool_result bash from-tool\n',
      'usage 11 input tokens, 7 output tokens',
      'reasoning I consider.',
      'text The answer',
      'usage 11 input tokens, 7 output tokens',
      'done',
    ])
    t.strictSame(state.outcome, { status: 'done' })
    t.equal(readFileSync(join(cli.cwd, 'file'), 'utf8'), 'from-tool\n', 'tools run in the directory')
    t.equal(sha256(lastTexts()[0] ?? ''), sha256(prompt), `${Buffer.byteLength(prompt)} bytes`)
    t.equal(models.requests.length, models.scripted.length, 'no further request for a title')
  })

  await t.test('a resumed session without auto: writing is allowed, a command is refused', async (t) => {
    models.reply(
      toolCall('write', { filePath: join(cli.cwd, 'written'), content: 'x' }),
      toolCall('bash', { command: 'touch refused', description: 'writes' }),
    )
    const { events, state, exitCode } = await run('a second question', { sessionId, auto: false })
    t.equal(state.sessionId, sessionId)
    t.equal(lastTexts().at(-1), 'a second question')
    t.equal(lastTexts().length, 2, 'with the history')
    t.ok(existsSync(join(cli.cwd, 'written')))
    t.notOk(existsSync(join(cli.cwd, 'refused')))
    t.equal(exitCode, 0)
    t.notOk(events.some(({ type }) => type === 'done'))
    t.equal(state.outcome, null)
    t.match(opencode.resolveUnfinished(state), {
      status: 'failed',
      message: /tool bash needs a permission. Send auto: true/,
    })
  })

  await t.test('a rejected key', async (t) => {
    models.reply(failure(401, 'Incorrect API key'))
    const { events, state, exitCode } = await run('hello')
    t.equal(exitCode, 1)
    t.strictSame(state.outcome, { status: 'failed', message: 'Incorrect API key' })
    t.equal(summarize(events).at(-1), 'error Incorrect API key')
  })

  await t.test('an unknown model', async (t) => {
    const { state, exitCode } = await run('hello', { model: 'fake/unknown' })
    t.equal(exitCode, 1)
    t.match(state.outcome, { status: 'failed', message: /may not know the model/ })
  })

  await t.test('an interrupt ends OpenCode without a final event', async (t) => {
    const held = holdStream('partial ')
    models.reply(held.reply)
    const running = startCli(t, opencode, { agents, cli, prompt: 'a long question', sessionId })
    await held.started
    running.interrupt()
    const { state, signal } = await running.result
    t.equal(signal, 'SIGTERM')
    t.equal(state.outcome, null)
    t.equal(opencode.resolveUnfinished(state), null)
    await held.disconnected
  })
})
