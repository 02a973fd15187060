// The real Claude Code with a fake model server: its command line, output and sessions are as the provider expects.
// test/e2e/real-prompts has the large prompt, the rejected key and the unknown model.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { claude } from '../../../../agent/prompts/providers/claude.ts'
import { cutStream, failure, holdStream, text, toolCall } from '../../../support/model-server/replies.ts'
import { summarize } from '../providers/mapping.ts'
import { setUpCli, skip } from './set-up-cli.ts'

t.test('Claude Code', { skip }, async (t) => {
  // Claude Code adds texts of its own to the messages of the user.
  const { models, cli, run, start, lastTexts } = await setUpCli(t, claude, {
    addedText: /^<system-reminder>/,
  })

  let sessionId: string | null = null
  await t.test('an answer with a tool call and reasoning', async (t) => {
    models.reply(toolCall('Bash', { command: 'echo from-tool > file; cat file', description: 'test' }), {
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
        'tool Bash {"command":"echo from-tool > file; cat file","description":"test"}',
        'tool_result Bash from-tool',
        'reasoning I consider.',
        'text The answer',
        'done',
      ],
    )
    t.match(summarize(events).at(-2), 'usage 22 input tokens, 14 output tokens')
    t.strictSame(state.outcome, { status: 'done' })
    t.equal(readFileSync(join(cli.cwd, 'file'), 'utf8'), 'from-tool\n', 'tools run in the directory')
    t.match(models.scripted[0], { model: cli.model, effort: 'high' })
  })

  await t.test('a resumed session has the history and the same id', async (t) => {
    models.reply(text('again'))
    const { events, state } = await run('a second question', { sessionId })
    t.equal(state.sessionId, sessionId)
    t.strictSame(lastTexts(), ['a question', 'a second question'])
    t.match(summarize(events).slice(0, 2), [`session ${sessionId}`, 'text again'])
    t.strictSame(state.outcome, { status: 'done' })
  })

  await t.test('an unknown session is a failure', async (t) => {
    const unknown = '00000000-0000-4000-8000-000000000000'
    const { state, exitCode } = await run('hello', { sessionId: unknown })
    t.equal(exitCode, 1)
    t.match(state.outcome, { status: 'failed', message: unknown })
    t.not(state.sessionId, unknown)
  })

  await t.test('without auto, commands are denied and the run continues', async (t) => {
    models.reply(toolCall('Bash', { command: 'python3 -c "print(1)"', description: 'test' }), text('without'))
    const { events, state, exitCode } = await run('hello', { auto: false })
    t.equal(exitCode, 0)
    t.strictSame(state.outcome, { status: 'done' })
    t.match(summarize(events).join('\n'), /tool_result Bash .*(permission|approval)/i)
  })

  await t.test('a prompt is not a command', async (t) => {
    for (const prompt of ['/cost of this', '\n/cost', '!echo hi', '#note']) {
      const { events } = await run(prompt)
      t.ok(
        lastTexts().some((part) => part.trim() === prompt.trim()),
        prompt,
      )
      t.match(summarize(events).join('\n'), 'text ok')
    }
  })

  await t.test('a model that fails', async (t) => {
    models.reply(failure(500, 'broken'), failure(500, 'broken'), failure(500, 'broken'))
    const { events, state, exitCode } = await run('hello')
    t.equal(exitCode, 1)
    t.match(state.outcome, { status: 'failed', message: /500.*broken/ })
    const types = events.map(({ type }) => type)
    t.equal(types.filter((type) => type === 'error').length, 1, 'the error is reported once')
    t.match(summarize(events).join('\n'), /notice Retry 1 of 1 in \d+ ms: HTTP 500/)
  })

  await t.test('a stream that breaks is never a success', async (t) => {
    models.replyAlways(cutStream('partial'))
    const { state, exitCode } = await run('hello')
    models.replyAlways(text('ok'))
    t.equal(exitCode, 1)
    t.match(state.outcome, { status: 'failed' })
  })

  await t.test('no credential', async (t) => {
    const { events, state, exitCode } = await run('hello', { env: { ANTHROPIC_API_KEY: '' } })
    t.equal(exitCode, 1)
    t.match(state.outcome, { status: 'failed', message: /Not logged in/ })
    t.equal(events.filter(({ type }) => type === 'error').length, 1)
  })

  await t.test('an interrupt ends Claude Code, and the session can be resumed', async (t) => {
    const held = holdStream('partial ')
    models.reply(held.reply)
    const running = start('a long question')
    await held.started
    await running.waitForEvent('session')
    running.interrupt()
    const { state } = await running.result
    t.not(state.outcome?.status, 'done')
    await held.disconnected
    models.reply(text('resumed'))
    const resumed = await run('next', { sessionId: state.sessionId })
    t.strictSame(resumed.state.outcome, { status: 'done' })
    t.match(lastTexts().join('\n'), /a long question.*next/s)
  })

  await t.test('its temporary files are in the directory of the run', async (t) => {
    t.strictSame(readdirSync(cli.env.TMPDIR ?? ''), [])
  })
})
