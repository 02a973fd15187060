// The tests of prompts to a real coding agent over the HTTP API, the coordinator and the agent of a real box, with a fake
// model server.
import t from 'tap'
import type { ProviderName } from '../../../shared/api/prompts.ts'
import { createLargePrompt, sha256 } from '../../support/coding-agents/large-prompt.ts'
import { userTexts } from '../../support/model-server/model-request.ts'
import { failure, holdStream, modelNotFound, type Reply, text } from '../../support/model-server/replies.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { findSkipReason, startRealPromptBox } from './real-prompt-box.ts'

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
    const { models, post, prompt, waitForRun, readEvents, readText, boxRequest } = box

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
        const command = `\`npm install -g ${installPackage}\` failed: exit status 1: ECONNREFUSED: `
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

    // Each run costs seconds of CPU time, so that the runs of one queue also fail, are interrupted and resume.
    await t.test(
      'three at once over kill -9 of the agent, and a queue of five behind the first',
      async (t) => {
        const before = box.listCommandLines()
        const large = createLargePrompt()
        const rejected = failure(401, 'Incorrect API key')
        const unknown = modelNotFound(agent.unknownModel)
        const [held, streaming] = [holdStream('first half, '), holdStream('partial ')]
        models.replyTo('question zero', runCommand('echo from-tool > file; cat file'), held.reply)
        models.replyTo('stream endlessly', streaming.reply)
        models.replyTo(large, text('whole answer'))
        models.replyTo('question 1', text('answer 1'))
        models.replyTo('question 2', unknown, unknown, unknown, unknown)
        models.replyTo('question 3', runCommand(ENDLESS))
        models.replyTo('question 4', rejected, rejected, rejected, rejected)
        models.replyTo('question 5', text('answer 5'))

        const run = await prompt('question zero')
        const queued: string[] = []
        for (const n of [1, 2, 3, 4, 5]) {
          const { status, json } = await post(`question ${n}`, {
            ...{ queue: true, conversationId: run.conversationId },
            ...(n === 2 ? { model: agent.unknownModel } : {}),
          })
          t.match([status, json.type, json.conversationId], [202, 'prompt.queued', run.conversationId])
          queued.push(json.queued.id)
        }
        const refused = await post('not queued', { conversationId: run.conversationId })
        t.match([refused.status, refused.json.error.code], [409, 'prompt_in_progress'])
        const interrupt = async (id: string) => {
          const { json } = await boxRequest('POST', `/prompts/${id}/interrupt`)
          t.match(json, { type: 'prompt.interrupted', id, wasRunning: true, signal: /^(INT|TERM)$/ })
        }

        // Two first starts of OpenCode at once can fail, because both create its database.
        await held.started
        const [endless, whole] = await Promise.all([
          prompt('stream endlessly', { new: true }),
          prompt(large, { new: true }),
        ])
        await streaming.started
        await box.killAgent()
        await t.test('an interrupt while streaming', async (t) => {
          await interrupt(endless.id)
          t.match(await waitForRun(endless.id), { status: 'interrupted' })
          await streaming.disconnected
          const { json } = await boxRequest('GET', `/prompts/${run.id}`)
          t.equal(json.run.status, 'running', 'the other run continues')
        })
        await t.test('512 KiB', async (t) => {
          t.match(await waitForRun(whole.id), { status: 'done' })
          t.equal(await readText(whole.id), 'whole answer')
          const received = models.scripted.flatMap(userTexts).map(sha256)
          t.ok(received.includes(sha256(large)), `${Buffer.byteLength(large)} bytes arrived whole`)
        })
        held.release('second half')
        const ended = await waitForRun(run.id)
        await t.test('an answer with a tool call', async (t) => {
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
        })

        const [answered, withUnknownModel, inTool, failed, last] = queued
        if (!answered || !withUnknownModel || !inTool || !failed || !last) throw new Error('five are queued')
        const lastHistory = () => models.scripted.slice(-1).flatMap(userTexts).join('\n')
        await t.test('a resumed session, and an unknown model', async (t) => {
          t.match(await waitForRun(answered), { status: 'done' })
          t.equal(await readText(answered), 'answer 1')
          t.match(await waitForRun(withUnknownModel), {
            status: 'failed',
            error: agent.messages.unknownModel,
          })
        })
        await t.test('an interrupt inside a tool', async (t) => {
          await box.waitForFile('project/in-tool')
          await interrupt(inTool)
          t.match(await waitForRun(inTool), { status: 'interrupted' })
        })
        await t.test('a model that fails', async (t) => {
          t.match(await waitForRun(failed), { status: 'failed', error: agent.messages.rejectedKey })
          t.equal((await readEvents(failed)).filter(({ type }) => type === 'error').length, 1)
        })
        await t.test('the last of the queue has the history', async (t) => {
          let parent = run.id
          for (const id of queued) {
            t.match(await waitForRun(id), { parent, resumedFrom: ended.sessionId, cwd: ended.cwd })
            parent = id
          }
          t.match(await waitForRun(last), { status: 'done' })
          t.equal(await readText(last), 'answer 5')
          t.match(lastHistory(), /question zero.*question 1.*question 3.*question 4.*question 5/s)
        })
        await waitUntil('the processes of the runs have exited', () =>
          box.listCommandLines().every((commandLine) => before.includes(commandLine)),
        )
      },
    )
  })
}
