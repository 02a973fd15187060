// The archives of Podman, as an ordinary user.
import t from 'tap'
import { findPodmanProblem, startPodman } from '../../../../support/engines/podman.ts'
import { testArchives } from './archive-cases.ts'

t.test('archives', { skip: findPodmanProblem('ordinary') ?? false }, async (t) => {
  const engine = await startPodman('ordinary')
  if ('skip' in engine) return void t.comment(engine.skip)
  t.teardown(() => engine.close())
  await testArchives(t, 'podman', engine)
})
