// The local provider's messages about isolation: levels that do not work, and the startup banner.
import { chmod } from 'node:fs/promises'
import t from 'tap'
import { createDataDir, createMachineSpec, isRoot, openProvider } from './support.ts'

t.test('rejects a configured level that does not work, with the reason', async (test) => {
  const dataDir = await createDataDir(test)
  const opening = openProvider(dataDir, { level: 'namespaces', nodePath: '/bin/false' })
  await test.rejects(opening, {
    name: 'PermanentProviderError',
    message: /^Isolation level namespaces is not available: /,
  })
})

t.test('fails every create permanently when no level works', async (test) => {
  const dataDir = await createDataDir(test)
  const provider = await openProvider(dataDir, {
    level: 'process',
    isolation: 'auto',
    nodePath: '/bin/false',
  })
  test.match(
    provider.describe(),
    /^Local boxes cannot be created\. No isolation level works on this machine: /,
  )
  const creating = provider.create(createMachineSpec())
  await test.rejects(creating, {
    name: 'PermanentProviderError',
    message: /^No isolation level works on this machine: /,
  })
})

t.test(
  'explains how to make the data directory accessible to box users',
  { skip: isRoot ? false : 'needs root' },
  async (test) => {
    const dataDir = await createDataDir(test)
    await chmod(dataDir, 0o700)
    const opening = openProvider(dataDir, { level: 'process', runProbes: true })
    await test.rejects(opening, new RegExp(`chmod o\\+x ${dataDir}`))
  },
)

t.test('describes the isolation for the startup banner', async (test) => {
  const dataDir = await createDataDir(test)
  const provider = await openProvider(dataDir, { level: 'process' })
  test.match(provider.describe(), /^Local boxes use isolation level process: /)
  test.match(
    provider.describe(),
    /A box that uses more disk space or has more files than its tier allows is suspended\./,
  )
  test.match(provider.describe(), /Boxes share the network of this machine/)
})
