// A level that is asked for and cannot be is refused in words that help; the automatic choice says why it fell back.
import { chmod } from 'node:fs/promises'
import t from 'tap'
import { isRoot, makeDataDir, newSpec, openProvider } from './support.ts'

t.test('a forced level that does not work', async (test) => {
  const dataDir = await makeDataDir(test)
  const opening = openProvider(dataDir, { level: 'namespaces', nodePath: '/bin/false' })
  await test.rejects(opening, {
    name: 'PermanentProviderError',
    message: /The isolation level namespaces does not work here: /,
  })
})

t.test('no level works: a create says so and is not tried again', async (test) => {
  const dataDir = await makeDataDir(test)
  const provider = await openProvider(dataDir, {
    level: 'process',
    isolation: 'auto',
    nodePath: '/bin/false',
  })
  test.match(provider.describe(), /Local boxes cannot be made here/)
  const creating = provider.create({ ...newSpec(), agentToken: 'bxt_test' })
  await test.rejects(creating, { name: 'PermanentProviderError', message: /No isolation level is possible/ })
})

t.test(
  'a data folder that a plain process cannot reach',
  { skip: isRoot ? false : 'not root' },
  async (test) => {
    const dataDir = await makeDataDir(test)
    await chmod(dataDir, 0o700)
    await test.rejects(openProvider(dataDir, { level: 'process' }), new RegExp(`chmod o\\+x ${dataDir}`))
  },
)

t.test('the line printed at start', async (test) => {
  const dataDir = await makeDataDir(test)
  const provider = await openProvider(dataDir, { level: 'process' })
  test.match(provider.describe(), /isolation level process/)
  test.match(provider.describe(), /network is this machine's/)
})
