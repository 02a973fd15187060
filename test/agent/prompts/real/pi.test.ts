// The real pi with a fake model server: its command line, its output and its sessions are as the provider expects.
// test/e2e/real-prompts has the large prompt.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { pi } from '../../../../agent/prompts/providers/pi.ts'
import { failure, holdStream, modelNotFound, text, toolCall } from '../../../support/model-server/replies.ts'
import { summarize } from '../providers/mapping.ts'
import { setUpCli, skip } from './set-up-cli.ts'

t.test('pi', { skip }, async (t) => {
  const { models, cli, run, start, lastTexts } = await setUpCli(t, pi)

  let sessionId: string | null = null
  await t.test('an answer with a tool call and reasoning', async (t) => {
    models.reply(toolCall('bash', { command: 'echo from-tool > file; cat file' }), {
      reasoning: 'I consider.',
      text: ['The ', 'answer'],
    })
    const { events, state, exitCode, stderr } = await run('a question', { effort: 'high' })
    sessionId = state.sessionId
    t.ok(sessionId)
    t.equal(exitCode, 0, stderr)
    t.strictSame(
      summarize(events).filter((event) => !event.startsWith('usage')),
      [
        `session ${sessionId}`,
        'tool bash {"command":"echo from-tool > file; cat file"}',
        'tool_result bash from-tool\n',
        'reasoning I consider.',
        'text The answer',
        'done',
      ],
    )
    t.match(summarize(events).at(-2), 'usage 11 input tokens, 7 output tokens')
    t.strictSame(state.outcome, { status: 'done' })
    t.equal(readFileSync(join(cli.cwd, 'file'), 'utf8'), 'from-tool\n', 'tools run in the directory')
    t.equal(models.scripted[0]?.effort, 'high')
  })

  await t.test('a resumed session has the history and the same id', async (t) => {
    models.reply(text('again'))
    const { state } = await run('a second question', { sessionId })
    t.equal(state.sessionId, sessionId)
    t.strictSame(lastTexts(), ['a question', 'a second question'])
    t.strictSame(state.outcome, { status: 'done' })
  })

  await t.test('a prompt that starts with a slash is not a command', async (t) => {
    mkdirSync(join(cli.home, '.pi/agent/prompts'))
    writeFileSync(join(cli.home, '.pi/agent/prompts/review.md'), 'the text of the template')
    await run('/review this')
    t.match(lastTexts()[0], /^\u200b\/review this$/)
  })

  await t.test('a failed model is a failure in spite of exit status 0', async (t) => {
    models.reply(failure(401, 'Incorrect API key'))
    const { events, state, exitCode } = await run('hello')
    t.equal(exitCode, 0)
    t.match(state.outcome, { status: 'failed', message: /401.*Incorrect API key/ })
    t.match(summarize(events).at(-1), /^error 401/)
  })

  await t.test('an unknown model of a known provider', async (t) => {
    models.reply(modelNotFound('fake-model'))
    const { state } = await run('hello')
    t.match(state.outcome, { status: 'failed', message: /404.*fake-model/ })
  })

  await t.test('an unknown provider', async (t) => {
    const { state, exitCode, stderr } = await run('hello', { model: 'unknown/model' })
    t.equal(exitCode, 1)
    t.equal(state.outcome, null)
    t.match(stderr, /unknown\/model/)
  })

  await t.test('a provider without a credential', async (t) => {
    const { state, exitCode, stderr } = await run('hello', { model: 'anthropic/claude-sonnet-4-5' })
    t.equal(exitCode, 1)
    t.equal(state.outcome, null)
    t.match(stderr, /No API key found/)
  })

  await t.test(
    'after an interrupt in the first answer, the session continues with the same id',
    async (t) => {
      const held = holdStream('partial ')
      models.reply(held.reply)
      const running = start('a long question')
      await held.started
      await running.waitForEvent('session')
      running.interrupt()
      const { state, exitCode, signal } = await running.result
      t.equal(state.outcome, null)
      t.equal(pi.resolveUnfinished(state), null)
      t.ok(signal === 'SIGTERM' || exitCode === 143)
      await held.disconnected
      models.reply(text('resumed'))
      const resumed = await run('next', { sessionId: state.sessionId })
      t.strictSame(resumed.state.outcome, { status: 'done' })
      t.equal(resumed.state.sessionId, state.sessionId)
      t.equal(lastTexts().at(-1), 'next')
    },
  )
})
