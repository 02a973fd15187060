// docs/integrations/computesdk.ts with the real ComputeSDK.
import t from 'tap'
import { installIntegrations } from '../../support/integrations/install-integrations.ts'
import { setUpExample } from './example.ts'

const { skip, nodeModules } = await installIntegrations()

t.test('a ComputeSDK provider', { skip }, async (t) => {
  const { runProgram } = await setUpExample(t, 'computesdk.ts', nodeModules)

  t.test('a sandbox from its creation to its end', async (t) => {
    const printed = await runProgram(`
      import { compute } from 'computesdk'
      import { boxwoodProvider } from './computesdk.ts'

      const provider = boxwoodProvider({ box: { tier: 'lite' } })
      compute.setConfig({ provider })
      const before = (await provider.sandbox.list()).length
      const limit = 1000
      const sandbox = await compute.sandbox.create({ name: 'compute', envs: { GREETING: 'hi' } })
      const printed: Record<string, unknown> = {}
      try {
        const chunks: string[] = []
        printed.result = await sandbox.runCommand('echo $GREETING $MORE; pwd >&2; exit 3', { env: { MORE: 'more' }, cwd: '/tmp' })
        await sandbox.runCommand('echo a; echo b >&2', {
          onStdout: (text) => chunks.push(text), onStderr: (text) => chunks.push(text),
        })
        printed.chunks = chunks.sort()
        printed.limited = (await sandbox.runCommand('exec sleep 1000', { timeout: limit })).exitCode
        await sandbox.runCommand('mkfifo fifo')
        printed.background = (await sandbox.runCommand('cat fifo > copied; touch done', { background: true })).exitCode
        printed.copied = (await sandbox.runCommand('echo x > fifo; while [ ! -e done ]; do sleep 0.05; done; cat copied')).stdout
        await sandbox.filesystem.writeFile('src/deep/a.txt', 'text')
        await sandbox.filesystem.mkdir('src/deep/empty')
        printed.text = await sandbox.filesystem.readFile('src/deep/a.txt')
        printed.entries = (await sandbox.filesystem.readdir('src/deep')).map(({ name, type }) => [name, type])
        await sandbox.filesystem.remove('src/deep')
        printed.exists = [await sandbox.filesystem.exists('src'), await sandbox.filesystem.exists('src/deep')]
        printed.url = await sandbox.getUrl({ port: 3000 })
        const { createdAt, ...info } = await sandbox.getInfo()
        printed.info = info
        printed.found = (await compute.sandbox.getById(sandbox.sandboxId))?.sandboxId === sandbox.sandboxId
        printed.listed = (await provider.sandbox.list()).length - before
      } finally {
        await sandbox.destroy()
      }
      await provider.sandbox.destroy(sandbox.sandboxId)
      printed.left = (await provider.sandbox.list()).length - before
      console.log(JSON.stringify(printed))
    `)
    t.match(printed, {
      result: { stdout: 'hi more\n', stderr: '/tmp\n', exitCode: 3 },
      chunks: ['a\n', 'b\n'],
      limited: 124,
      background: 0,
      copied: 'x\n',
      text: 'text',
      entries: [
        ['a.txt', 'file'],
        ['empty', 'directory'],
      ],
      exists: [true, false],
      url: /^http/,
      info: { provider: 'boxwood', status: 'running', metadata: { computesdk: 'true' } },
      found: true,
      listed: 1,
      left: 0,
    })
  })
})
