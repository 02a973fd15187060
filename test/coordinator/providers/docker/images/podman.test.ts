// The images of Podman, as root.
import t from 'tap'
import { findPodmanProblem, startPodman } from '../../../../support/engines/podman.ts'
import { testImages } from './image-cases.ts'

t.test('images', { skip: findPodmanProblem('root') ?? false }, async (t) => {
  const engine = await startPodman('root')
  if ('skip' in engine) return void t.comment(engine.skip)
  t.teardown(() => engine.close())
  await testImages(t, 'podman', engine)
})
