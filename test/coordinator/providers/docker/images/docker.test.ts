// The images of Docker.
import t from 'tap'
import { findDockerProblem, startDocker } from '../../../../support/engines/docker.ts'
import { testImages } from './image-cases.ts'

t.test('images', { skip: findDockerProblem() ?? false }, async (t) => {
  const engine = await startDocker()
  if ('skip' in engine) return void t.comment(engine.skip)
  t.teardown(() => engine.close())
  await testImages(t, 'docker', engine)
})
