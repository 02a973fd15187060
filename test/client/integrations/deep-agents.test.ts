// docs/integrations/deep-agents.ts with the real Deep Agents, and a model of the test package of LangChain.
import t from 'tap'
import { installIntegrations } from '../../support/integrations/install-integrations.ts'
import { setUpExample } from './example.ts'

const { skip, nodeModules } = await installIntegrations()

const START = `
  import { Boxwood } from 'boxwood-client'
  import { BoxSandbox } from './deep-agents.ts'

  const box = await new Boxwood().boxes.get(process.env.BOX ?? '')
  const backend = new BoxSandbox(box, { timeoutMs: 1000 })
`

t.test('a LangChain Deep Agents backend', { skip }, async (t) => {
  const { runProgram, box } = await setUpExample(t, 'deep-agents.ts', nodeModules)

  t.test('an agent writes a file of the box, edits it and runs a command', async (t) => {
    const printed = await runProgram(`
      import { AIMessage, ToolMessage } from '@langchain/core/messages'
      import { fakeModel } from '@langchain/core/testing'
      import { createDeepAgent, isSandboxBackend } from 'deepagents'
      ${START}
      const call = (name: string, args: object) => new AIMessage({ content: '', tool_calls: [{ name, args: { ...args }, id: name }] })
      const file_path = '/tmp/deep-agent/notes.txt'
      const model = fakeModel()
        .respond(call('write_file', { file_path, content: 'one two' }))
        .respond(call('edit_file', { file_path, old_string: 'two', new_string: 'three' }))
        .respond(call('execute', { command: 'hostname; cat ' + file_path + '; exit 3' }))
        .respond(new AIMessage('done'))
      const agent = createDeepAgent({ model, backend })
      const { messages } = await agent.invoke({ messages: [{ role: 'user', content: 'go' }] })
      const results = messages.filter((message) => ToolMessage.isInstance(message)).map(({ text }) => text)
      console.log(JSON.stringify({ isSandbox: isSandboxBackend(backend), id: backend.id, results, last: messages.at(-1)?.text }))
    `)
    t.match(printed, { isSandbox: true, id: box.id, last: 'done' })
    t.equal(printed.results.length, 3)
    t.match(printed.results[2], new RegExp(`^${box.hostname}\none three[^]*3`))
  })

  t.test('files, their errors, and the end of a command', async (t) => {
    const printed = await runProgram(`
      ${START}
      const encode = (text: string) => new TextEncoder().encode(text)
      const [, taken] = await backend.uploadFiles([
        ['deep/er/a.bin', new Uint8Array([0, 255])], ['deep/er', encode('x')], ['deep/b.txt', encode('needle\\n')],
      ])
      await box.exec('ln -s er deep/link; ln -s b.txt deep/c.txt')
      const downloads = await backend.downloadFiles(['deep/er/a.bin', 'deep/none', 'deep/link', 'deep/c.txt'])
      const root = (await box.exec('pwd')).stdout.trim()
      console.log(JSON.stringify({
        taken,
        downloads: downloads.map(({ content, error }) => error ?? [...content ?? []].length),
        grep: await backend.grep('needle', root + '/deep'),
        glob: (await backend.glob('**/*.bin', root + '/deep')).files?.length,
        both: await backend.execute('echo out; echo err >&2'),
        long: (({ output, truncated }) => [output.length, truncated])(await backend.execute('head -c 200000 /dev/zero | tr "\\\\0" x')),
        slow: await backend.execute('exec sleep 1000'),
      }))
    `)
    t.match(printed, {
      taken: { path: 'deep/er', error: 'invalid_path' },
      downloads: [2, 'file_not_found', 'is_directory', 7],
      grep: { matches: [{ path: /deep\/[bc]\.txt$/, line: 1, text: 'needle' }] },
      glob: 2,
      both: { exitCode: 0, truncated: false },
      long: [100_000, true],
      slow: { exitCode: null, output: /terminated after 1 seconds/ },
    })
    t.same(printed.both.output.trim().split('\n').sort(), ['err', 'out'])
  })
})
