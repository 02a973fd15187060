// The archives of Podman, as root.
import t from 'tap'
import { findPodmanProblem, startPodman } from '../../../../support/engines/podman.ts'
import { testArchives } from './archive-cases.ts'

const problem = findPodmanProblem('root')
t.test('archives', { skip: problem ?? false }, async (t) => {
  const engine = await startPodman('root')
  if ('skip' in engine) return void t.comment(engine.skip)
  t.teardown(() => engine.close())
  await testArchives(t, 'podman', engine)
})
