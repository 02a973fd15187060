// The real OpenCode with a fake model server: its command line, output and sessions are as the provider expects. A run takes
// several seconds and 600 MB, so each one checks several things, and test/e2e/real-prompts has the large prompt, the failures and
// the interrupts.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { opencode } from '../../../../agent/prompts/providers/opencode.ts'
import { toolCall } from '../../../support/model-server/replies.ts'
import { summarize } from '../providers/mapping.ts'
import { setUpCli, skip } from './set-up-cli.ts'

t.test('OpenCode', { skip }, async (t) => {
  const { models, cli, run, lastTexts } = await setUpCli(t, opencode)

  let sessionId: string | null = null
  await t.test('a prompt that starts with a slash, a tool call and reasoning', async (t) => {
    const prompt = '/init is not a command'
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
    t.strictSame(lastTexts(), [prompt])
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
})
