// The tools of archives: a probe that was killed does not choose to read the files of boxes as root.
import t from 'tap'
import { createToolsProbe } from '../../../../../coordinator/providers/parts/archives/tar.ts'
import { InconclusiveProbeError } from '../../../../../coordinator/providers/parts/run-probe.ts'

function createProbe(results: (string | null | Error)[]) {
  const commands: string[] = []
  const probe = createToolsProbe({
    onSlow: () => undefined,
    run: async (command) => {
      commands.push(command.join(' '))
      const result = results.shift() ?? null
      if (result instanceof Error) throw result
      return result
    },
  })
  return { probe, commands }
}

t.test('probes once', async (t) => {
  const { probe, commands } = createProbe([null, null])
  t.same(await probe(null), { hasUserNamespace: true })
  t.same(await probe(null), { hasUserNamespace: true })
  t.equal(commands.length, 2)
})

t.test('an answer decides', async (t) => {
  t.same(await createProbe([null, 'Operation not permitted']).probe(null), { hasUserNamespace: false })
  await t.rejects(createProbe(['sh exited with code 1']).probe(null), /Snapshots need GNU tar/)
})

t.test('a probe without an answer fails the archive, and is repeated at the next one', async (t) => {
  const killed = () => new InconclusiveProbeError('was killed 3 times')
  const { probe, commands } = createProbe([killed(), null, killed(), null, null])
  await t.rejects(probe(null), { name: 'InconclusiveProbeError' })
  await t.rejects(probe(null), { name: 'InconclusiveProbeError' })
  t.same(await probe(null), { hasUserNamespace: true })
  t.equal(commands.length, 5)
})
