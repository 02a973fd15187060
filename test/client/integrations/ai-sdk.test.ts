// docs/integrations/ai-sdk.ts with the real AI SDK, and a model of its test package.
import t from 'tap'
import { installIntegrations } from '../../support/integrations/install-integrations.ts'
import { setUpExample } from './example.ts'

const { skip, nodeModules } = await installIntegrations()

const START = `
  import { Boxwood } from 'boxwood-client'
  import { createSandboxSession } from './ai-sdk.ts'

  const box = await new Boxwood().boxes.get(process.env.BOX ?? '')
  const sandbox = createSandboxSession(box)
`

t.test('an AI SDK sandbox session', { skip }, async (t) => {
  const { runProgram, box } = await setUpExample(t, 'ai-sdk.ts', nodeModules)

  t.test('a tool that a model calls runs a command on the box', async (t) => {
    const printed = await runProgram(`
      import { generateText, stepCountIs, tool } from 'ai'
      import { MockLanguageModelV4 } from 'ai/test'
      import { z } from 'zod'
      ${START}
      const bash = tool({
        description: ({ experimental_sandbox }) => 'Runs a command. ' + experimental_sandbox?.description,
        inputSchema: z.object({ command: z.string() }),
        execute: ({ command }, { experimental_sandbox, abortSignal }) =>
          experimental_sandbox?.run({ command, ...(abortSignal && { abortSignal }) }),
      })
      const rest = {
        usage: {
          inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
          outputTokens: { total: 1, text: 1, reasoning: undefined },
        },
        warnings: [],
      }
      const input = JSON.stringify({ command: 'hostname; echo oops >&2; exit 3' })
      const model = new MockLanguageModelV4({
        doGenerate: [
          {
            content: [{ type: 'tool-call', toolCallId: '1', toolName: 'bash', input }],
            finishReason: { unified: 'tool-calls', raw: undefined },
            ...rest,
          },
          { content: [{ type: 'text', text: 'done' }], finishReason: { unified: 'stop', raw: undefined }, ...rest },
        ],
      })
      const { text, steps } = await generateText({
        model, tools: { bash }, experimental_sandbox: sandbox, prompt: 'go', stopWhen: stepCountIs(3),
      })
      const [offered] = model.doGenerateCalls[0]?.tools ?? []
      const [result] = steps[0]?.toolResults ?? []
      const description = offered?.type === 'function' ? offered.description : undefined
      console.log(JSON.stringify({ text, description, output: result?.output }))
    `)
    t.match(printed, {
      text: 'done',
      description: new RegExp(`the Linux machine ${box.hostname}`),
      output: { exitCode: 3, stdout: `${box.hostname}\n`, stderr: 'oops\n' },
    })
  })

  t.test('files', async (t) => {
    const printed = await runProgram(`
      ${START}
      const attempt = (call: PromiseLike<unknown>) => Promise.resolve(call).then(() => 'accepted', () => 'rejected')
      await sandbox.writeTextFile({ path: 'new/dir/a.txt', content: 'one\\ntwo\\nthree\\n' })
      await sandbox.writeBinaryFile({ path: 'new/b.bin', content: new Uint8Array([0, 255]) })
      await sandbox.writeFile({ path: 'new/c.bin', content: new Blob(['stream']).stream() })
      await sandbox.run({ command: 'ln -s dir/a.txt link; ln -s nowhere broken', workingDirectory: 'new' })
      const stream = await sandbox.readFile({ path: 'new/c.bin' })
      console.log(JSON.stringify({
        text: await sandbox.readTextFile({ path: 'new/dir/a.txt' }),
        lines: await sandbox.readTextFile({ path: 'new/dir/a.txt', startLine: 2, endLine: 9 }),
        bytes: [...(await sandbox.readBinaryFile({ path: 'new/b.bin' })) ?? []],
        stream: await new Response(stream).text(),
        missing: [
          await sandbox.readFile({ path: 'none' }),
          await sandbox.readBinaryFile({ path: 'none' }),
          await sandbox.readTextFile({ path: 'none/none' }),
          await sandbox.stat({ path: 'none' }),
          await sandbox.listDirectory({ path: 'none' }),
        ],
        stats: [
          await sandbox.stat({ path: 'new' }).then((stat) => stat?.type),
          await sandbox.stat({ path: 'new/dir/a.txt' }),
          await sandbox.stat({ path: 'new/link' }),
          await sandbox.stat({ path: 'new/broken' }),
        ],
        entries: await sandbox.listDirectory({ path: 'new' }),
        notDirectory: await attempt(sandbox.listDirectory({ path: 'new/b.bin' })),
        deleted: [await sandbox.deleteFile({ path: 'new/link' }), await sandbox.deleteFile({ path: 'new/link' })],
        directories: [
          await attempt(sandbox.deleteFile({ path: 'new/dir' })),
          await attempt(sandbox.writeTextFile({ path: 'new/dir', content: '' })),
        ],
        target: (await sandbox.stat({ path: 'new/dir/a.txt' }))?.size,
        encoding: await attempt(sandbox.writeTextFile({ path: 'x', content: '', encoding: 'utf-16le' })),
      }))
    `)
    t.same(printed, {
      text: 'one\ntwo\nthree\n',
      lines: 'two\nthree\n',
      bytes: [0, 255],
      stream: 'stream',
      missing: [null, null, null, null, null],
      stats: ['directory', { type: 'file', size: 14 }, { type: 'file', size: 14 }, null],
      entries: [
        { name: 'b.bin', type: 'file' },
        { name: 'broken', type: 'symlink' },
        { name: 'c.bin', type: 'file' },
        { name: 'dir', type: 'directory' },
        { name: 'link', type: 'symlink' },
      ],
      notDirectory: 'rejected',
      deleted: [true, false],
      directories: ['rejected', 'rejected'],
      target: 14,
      encoding: 'rejected',
    })
  })

  t.test('processes that are read, killed and aborted', async (t) => {
    const printed = await runProgram(`
      ${START}
      const text = (stream: ReadableStream<Uint8Array>) => new Response(stream as ReadableStream<Uint8Array<ArrayBuffer>>).text()
      const reason = (call: PromiseLike<unknown>) => Promise.resolve(call).then(() => 'accepted', (error) => error.message)
      const command = 'echo $GREETING; pwd >&2; exit 7'
      const first = await sandbox.spawn({ command, workingDirectory: '/tmp', env: { GREETING: 'hello' } })
      const output = await Promise.all([text(first.stdout), text(first.stderr), first.wait()])

      const second = await sandbox.spawn({ command: 'echo ready; exec sleep 1000' })
      const reader = second.stdout.getReader()
      const ready = new TextDecoder().decode((await reader.read()).value)
      await second.kill()
      await second.kill()

      const abort = new AbortController()
      const third = await sandbox.spawn({ command: 'echo $$; exec sleep 1000', abortSignal: abort.signal })
      const pid = new TextDecoder().decode((await third.stdout.getReader().read()).value).trim()
      const waiting = reason(third.wait())
      abort.abort(new Error('enough'))
      const aborted = await waiting
      const gone = await sandbox.run({ command: \`while kill -0 \${pid} 2>/dev/null; do sleep 0.05; done; echo gone\` })
      console.log(JSON.stringify({
        output, ready, killed: await second.wait(), aborted, gone: gone.stdout,
        stdin: await reason(sandbox.spawn({ command: 'touch started', stdin: true })),
        started: await sandbox.stat({ path: 'started' }),
      }))
    `)
    t.match(printed, {
      output: ['hello\n', '/tmp\n', { exitCode: 7 }],
      ready: 'ready\n',
      killed: { exitCode: 143 },
      aborted: 'enough',
      gone: 'gone\n',
      stdin: /no standard input\./,
      started: null,
    })
  })
})
