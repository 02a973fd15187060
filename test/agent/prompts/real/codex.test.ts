// The real Codex with a fake model server: its command line, output and sessions are as the provider expects.
// test/e2e/real-prompts has the large prompt, the rejected key and the unknown model.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { codex } from '../../../../agent/prompts/providers/codex.ts'
import { cutStream, failure, holdStream, text, toolCall } from '../../../support/model-server/replies.ts'
import { summarize } from '../providers/mapping.ts'
import { setUpCli, skip } from './set-up-cli.ts'

t.test('Codex', { skip }, async (t) => {
  // Codex adds texts of its own in XML elements.
  const { models, cli, run, start, lastTexts } = await setUpCli(t, codex, { addedText: /^<\w+>/ })

  let sessionId: string | null = null
  await t.test('an answer with a tool call and reasoning', async (t) => {
    models.reply(toolCall('exec_command', { cmd: 'echo from-tool > file; cat file' }), {
      reasoning: 'I consider.',
      text: ['The ', 'answer'],
    })
    const { events, state, exitCode, stderr } = await run('a question', { effort: 'high' })
    sessionId = state.sessionId
    t.ok(sessionId)
    t.equal(exitCode, 0, stderr)
    t.strictSame(
      summarize(events).filter((event) => !/^(usage|notice)/.test(event)),
      [
        `session ${sessionId}`,
        `tool command_execution {"command":"/bin/bash -lc 'echo from-tool > file; cat file'"}`,
        'tool_result command_execution from-tool\n',
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

  await t.test('a model whose only tool runs JavaScript', async (t) => {
    const code = "text(await tools.exec_command({ cmd: 'echo from-code' }))"
    models.reply(toolCall('exec', { freeform: code }), text('done'))
    // Codex knows the model, and offers it other tools than an unknown one.
    const { events, state } = await run('a question', { model: 'gpt-6.1-sol' })
    t.ok(models.scripted.at(-1)?.tools.includes('exec'))
    t.match(summarize(events).join('\n'), 'tool_result command_execution from-code\n')
    t.strictSame(state.outcome, { status: 'done' })
  })

  await t.test('a resumed session has the history and the same id', async (t) => {
    models.reply(text('again'))
    const { events, state } = await run('a second question', { sessionId })
    t.equal(state.sessionId, sessionId)
    t.strictSame(lastTexts(), ['a question', 'a second question'])
    t.match(
      summarize(events).filter((event) => !event.startsWith('notice')),
      [`session ${sessionId}`, 'text again'],
    )
    t.strictSame(state.outcome, { status: 'done' })
  })

  await t.test('an unknown session is a failure', async (t) => {
    const unknown = '00000000-0000-4000-8000-000000000000'
    const { state, exitCode, stderr } = await run('hello', { sessionId: unknown })
    t.equal(exitCode, 1)
    t.equal(state.outcome, null)
    t.match(stderr, unknown)
  })

  await t.test('a prompt that starts with a slash is not a command', async (t) => {
    const { events } = await run('/cost of this')
    t.equal(lastTexts().at(-1), '/cost of this')
    t.match(summarize(events).join('\n'), 'text ok')
  })

  await t.test('a model that fails', async (t) => {
    models.replyAlways(failure(500, 'broken'))
    const { events, state, exitCode } = await run('hello')
    models.replyAlways(text('ok'))
    t.equal(exitCode, 1)
    t.match(state.outcome, { status: 'failed', message: /temporary errors/ })
    const types = events.map(({ type }) => type)
    t.equal(types.filter((type) => type === 'error').length, 1, 'the error is reported once')
    t.match(summarize(events).join('\n'), /notice Reconnecting... 1\/1/)
  })

  await t.test('a stream that breaks is never a success', async (t) => {
    models.replyAlways(cutStream('partial'))
    const { state, exitCode } = await run('hello')
    models.replyAlways(text('ok'))
    t.equal(exitCode, 1)
    t.match(state.outcome, { status: 'failed' })
  })

  await t.test('an interrupt ends Codex, and the session can be resumed', async (t) => {
    const held = holdStream('partial ')
    models.reply(held.reply)
    const running = start('a long question')
    await held.started
    await running.waitForEvent('session')
    running.interrupt()
    const { state } = await running.result
    t.equal(state.outcome, null)
    await held.disconnected
    models.reply(text('resumed'))
    const resumed = await run('next', { sessionId: state.sessionId })
    t.strictSame(resumed.state.outcome, { status: 'done' })
    t.match(lastTexts().join('\n'), /a long question.*next/s)
  })
})
