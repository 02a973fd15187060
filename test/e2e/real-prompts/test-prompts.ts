// The tests of prompts to a real coding agent over the HTTP API, the coordinator and the agent of a real box, with a fake
// model server. A run of OpenCode takes several seconds, so that some runs serve two tests.
import t from 'tap'
import type { ProviderName } from '../../../shared/api/prompts.ts'
import { createLargePrompt, sha256 } from '../../support/coding-agents/large-prompt.ts'
import { userTexts } from '../../support/model-server/model-request.ts'
import { failure, holdStream, modelNotFound, type Reply, text } from '../../support/model-server/replies.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { findSkipReason, RUN_TIMEOUT_MS, startRealPromptBox } from './real-prompt-box.ts'

export type TestedAgent = {
  provider: ProviderName
  /** The reply of a model that runs a shell command. */
  runCommand(command: string): Reply
  /** The npm package that the first prompt installs; null: it is not installed. */
  installPackage: string | null
  /** A model for which the box has no credential before signIn(). Default: that of the home directory. */
  modelWithoutCredential?: string
  signInHint: RegExp
  unknownModel: string
  /** Messages of failed runs. */
  messages: { rejectedKey: RegExp; unknownModel: RegExp }
}

/** Runs until it is terminated. Claude Code refuses `sleep`. */
const ENDLESS = "python3 -c \"import time; open('in-tool', 'w'); time.sleep(600)\""

export function testPrompts(agent: TestedAgent): void {
  const { provider, runCommand, installPackage } = agent
  t.test(provider, { skip: findSkipReason() }, async (t) => {
    const box = await startRealPromptBox(t, provider)
    const { models, post, prompt, waitForRun, readEvents, readText, boxRequest, listPids } = box

    await t.test('not installed', async (t) => {
      if (installPackage !== null) {
        await box.linkNpm()
        await box.setRegistry('http://127.0.0.1:1')
      }
      const { status, json } = await post('hello')
      t.match([status, json.error.code], [409, 'provider_not_installed'])
      if (installPackage === null) {
        t.match(json.error.message, /is not installed on the box.*Run `npm install -g \S+` on the box/)
        await box.linkProgram()
      } else {
        const command = `\`npm install -g ${installPackage}\` failed: exit status 1:\n`
        t.ok(json.error.message.includes(command), json.error.message)
        t.match(json.error.message, /ECONNREFUSED/)
        await box.setRegistry()
      }
    })

    // The first prompt with a working registry installs OpenCode and pi.
    await t.test('not signed in', async (t) => {
      const { modelWithoutCredential: model } = agent
      const { status, json } = await post('hello', model === undefined ? {} : { model })
      t.match([status, json.error.code], [409, 'provider_not_signed_in'])
      t.match(json.error.message, agent.signInHint)
      t.match((await boxRequest('GET', '/prompts')).json, { runs: [], queued: [], active: null })
      await box.signIn()
    })

    await t.test(
      'an answer with a tool call, and a queue of five behind it, over kill -9 of the agent',
      async (t) => {
        const held = holdStream('first half, ')
        const answers = [1, 2, 3, 4, 5].map((n) => `answer ${n}`)
        models.reply(
          runCommand('echo from-tool > file; cat file'),
          held.reply,
          ...answers.map((a) => text(a)),
        )
        const run = await prompt('question zero')
        const queued: string[] = []
        for (const n of [1, 2, 3, 4, 5]) {
          const { status, json } = await post(`question ${n}`, { queue: true })
          t.match([status, json.type, json.conversationId], [202, 'prompt.queued', run.conversationId])
          queued.push(json.queued.id)
        }
        const refused = await post('not queued')
        t.match([refused.status, refused.json.error.code], [409, 'prompt_in_progress'])
        await held.started
        await box.killAgent()
        held.release('second half')

        const ended = await waitForRun(run.id)
        t.match(ended, { status: 'done', error: null, exitCode: 0 })
        const events = await readEvents(run.id)
        t.strictSame(
          events.map(({ seq }) => seq),
          Array.from(events, (_, index) => index + 1),
          'no gap and no double',
        )
        t.equal(ended.eventCount, events.length)
        t.equal(await readText(run.id), 'first half, second half')
        t.match(events.find(({ type }) => type === 'tool_result')?.text, 'from-tool')
        t.match(await box.exec('cat project/file'), { stdout: 'from-tool\n' })

        let parent = run.id
        const texts: string[] = []
        for (const id of queued) {
          const next = await waitForRun(id)
          t.match(next, { status: 'done', parent, resumedFrom: ended.sessionId, cwd: ended.cwd })
          texts.push(await readText(id))
          parent = id
        }
        t.strictSame(texts, answers)
        const history = models.scripted.slice(-1).flatMap(userTexts).join('\n')
        t.match(history, /question zero.*question 1.*question 2.*question 3.*question 4.*question 5/s)
      },
    )

    let interrupted = ''
    await t.test(
      'three at once: 512 KiB, an interrupt while streaming and one inside a tool, which leave no process',
      async (t) => {
        const before = new Set(listPids())
        const large = createLargePrompt()
        const [answered, streaming] = [holdStream('whole '), holdStream('partial ')]
        models.replyTo(large, answered.reply)
        models.replyTo('stream endlessly', streaming.reply)
        models.replyTo('run endlessly', runCommand(ENDLESS))
        const prompts = [large, 'stream endlessly', 'run endlessly']
        const [first, second, third] = await Promise.all(prompts.map((text) => prompt(text, { new: true })))
        if (!first || !second || !third) throw new Error('three runs were started')
        await Promise.all([answered.started, streaming.started])
        await waitUntil(
          'the tool runs',
          async () => (await box.exec('test -e project/in-tool')).exitCode === 0,
          RUN_TIMEOUT_MS,
        )
        for (const { id } of [second, third]) {
          const { json } = await boxRequest('POST', `/prompts/${id}/interrupt`)
          t.match(json, { type: 'prompt.interrupted', id, wasRunning: true, signal: /^(INT|TERM)$/ })
          t.match(await waitForRun(id), { status: 'interrupted' })
        }
        await streaming.disconnected
        t.equal((await boxRequest('GET', '/prompts')).json.active.id, first.id, 'the other run continues')
        answered.release('answer')
        t.match(await waitForRun(first.id), { status: 'done' })
        t.equal(await readText(first.id), 'whole answer')
        const received = models.scripted.flatMap(userTexts).map(sha256)
        t.ok(received.includes(sha256(large)), `${Buffer.byteLength(large)} bytes arrived whole`)
        await waitUntil('the processes of the runs have exited', () =>
          listPids().every((pid) => before.has(pid)),
        )
        interrupted = third.conversationId
      },
    )

    await t.test('a model that fails, in the conversation of an interrupted run', async (t) => {
      const rejected = failure(401, 'Incorrect API key')
      models.replyTo('with a rejected key', rejected, rejected, rejected, rejected)
      const continued = { conversationId: interrupted, cwd: undefined }
      const { id } = await prompt('with a rejected key', continued)
      const ended = await waitForRun(id)
      t.match(ended, { status: 'failed', error: agent.messages.rejectedKey })
      t.equal((await readEvents(id)).filter(({ type }) => type === 'error').length, 1)
      const history = models.scripted.slice(-1).flatMap(userTexts).join('\n')
      t.match(history, /run endlessly.*with a rejected key/s)
    })

    await t.test('an unknown model', async (t) => {
      const reply = modelNotFound(agent.unknownModel)
      models.replyTo('to an unknown model', reply, reply, reply, reply)
      const { id } = await prompt('to an unknown model', { model: agent.unknownModel, new: true })
      t.match(await waitForRun(id), { status: 'failed', error: agent.messages.unknownModel })
    })
  })
}
