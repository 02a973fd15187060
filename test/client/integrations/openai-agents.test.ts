// docs/integrations/openai-agents.ts with the real OpenAI Agents SDK, and a model of its test package.
import t from 'tap'
import { installIntegrations } from '../../support/integrations/install-integrations.ts'
import { setUpExample } from './example.ts'

const { skip, nodeModules } = await installIntegrations()

const START = `
  import { run, setTracingDisabled } from '@openai/agents'
  import { dir, file, filesystem, localDir, Manifest, SandboxAgent, shell } from '@openai/agents/sandbox'
  import { assistantMessage, functionCall, ScriptedModel } from '@openai/agents/testing'
  import { Boxwood } from 'boxwood-client'
  import { BoxwoodSandboxClient, createSandboxSession } from './openai-agents.ts'

  setTracingDisabled(true)
  const boxwood = new Boxwood()
  const box = await boxwood.boxes.get(process.env.BOX ?? '')
  const countBoxes = async () => {
    let count = 0
    for await (const { data } of boxwood.boxes.list()) if (data.desiredState !== 'terminated') count++
    return count
  }
  const command = (cmd: string) => [functionCall('exec_command', { cmd }, { callId: 'a' })]
  const patch = (...operations: object[]) => [functionCall('apply_patch', { operations }, { callId: 'b' })]
  const createAgent = (...steps: ConstructorParameters<typeof ScriptedModel>[0] extends Iterable<infer S> | undefined ? S[] : never) => {
    const model = new ScriptedModel([...steps, [assistantMessage('done')]])
    return { model, agent: new SandboxAgent({ name: 'coder', model, capabilities: [shell(), filesystem()] }) }
  }
  const readResults = (model: ScriptedModel) =>
    (model.lastCall?.request.input as { type?: string; output?: unknown }[])
      .filter(({ type }) => type?.endsWith('_result'))
      .map(({ output }) => (output as { text?: string }).text ?? output)
`

t.test('an OpenAI Agents SDK sandbox client', { skip }, async (t) => {
  const { runProgram } = await setUpExample(t, 'openai-agents.ts', nodeModules)

  t.test('a run has a box of its own, with the files and variables of the manifest', async (t) => {
    const printed = await runProgram(`
      ${START}
      const manifest = new Manifest({
        entries: { 'notes.md': file({ content: 'hello' }), src: dir({ children: { 'a.txt': file({ content: 'a' }) } }) },
        environment: { GREETING: 'hi' },
      })
      const { model, agent } = createAgent(command('pwd; cat notes.md src/a.txt; echo $GREETING; exit 3'))
      const before = await countBoxes()
      const { finalOutput } = await run(agent, 'go', {
        sandbox: { client: new BoxwoodSandboxClient(boxwood), manifest },
      })
      const tools = model.firstCall?.request.tools.map(({ name }) => name)
      console.log(JSON.stringify({ finalOutput, tools, results: readResults(model), left: (await countBoxes()) - before }))
    `)
    t.match(printed, {
      finalOutput: 'done',
      tools: ['exec_command', 'view_image', 'apply_patch'],
      results: [/^Wall time: [\d.]+ seconds\nProcess exited with code 3\nOutput:\n/],
      left: 0,
    })
    t.match(printed.results[0], /\/workspace\nhelloahi\n$/)
  })

  t.test('a session of a box that exists', async (t) => {
    const printed = await runProgram(`
      ${START}
      const session = await createSandboxSession(box, undefined, 1000)
      const editor = session.createEditor()
      await editor.createFile({ type: 'create_file', path: 'src/a.txt', diff: '+one\\n+two' })
      await editor.updateFile({ type: 'update_file', path: 'src/a.txt', diff: '@@\\n one\\n-two\\n+three', moveTo: 'b/c.txt' })
      await box.exec('ln -s b link && printf image > x.png', { cwd: 'workspace' })
      const { model, agent } = createAgent(command("echo 'it works'"))
      const before = await countBoxes()
      await run(agent, 'go', { sandbox: { session } })
      const attempt = (call: Promise<unknown>) => call.then(() => 'accepted', (error) => error.message)
      const client = new BoxwoodSandboxClient(boxwood)
      console.log(JSON.stringify({
        results: readResults(model),
        content: new TextDecoder().decode(await session.readFile({ path: 'b/c.txt' })),
        exists: [await session.pathExists('src/a.txt'), await session.pathExists('b/c.txt')],
        directories: [await session.directoryExists('link'), await session.directoryExists('b/c.txt')],
        entries: (await session.listDir({ path: '.' })).map(({ name, type }) => [name, type]),
        image: (await session.viewImage({ path: 'x.png' })).image.mediaType,
        quoted: (await session.exec({ cmd: "echo 'a b'", shell: 'sh', login: true })).stdout,
        long: (await session.exec({ cmd: 'seq 100000', maxOutputTokens: 10 })).output,
        slow: (await session.exec({ cmd: 'echo begin; exec sleep 1000' })).output,
        existing: await attempt(Promise.resolve(editor.createFile({ type: 'create_file', path: 'b/c.txt', diff: '+x' }))),
        user: await attempt(session.exec({ cmd: 'true', runAs: 'root' })),
        mount: await attempt(client.create({ manifest: { entries: { here: localDir({ src: '/tmp' }) } } })),
        left: (await countBoxes()) - before,
      }))
    `)
    t.match(printed, {
      results: [/Process exited with code 0\nOutput:\nit works\n/],
      content: /^one\nthree\n?$/,
      exists: [false, true],
      directories: [true, false],
      entries: [
        ['b', 'dir'],
        ['link', 'other'],
        ['src', 'dir'],
        ['x.png', 'file'],
      ],
      image: 'image/png',
      quoted: 'a b\n',
      long: /^1\n2\n[\s\S]* characters omitted\][\s\S]*100000\n$/,
      slow: /^begin\n\nThe command was terminated after 1 seconds/,
      existing: /it exists/,
      user: /Omit runAs/,
      mount: /here is neither/,
      left: 0,
    })
  })
})
