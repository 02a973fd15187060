// The archives of Docker.
import t from 'tap'
import { findDockerProblem, startDocker } from '../../../../support/engines/docker.ts'
import { testArchives } from './archive-cases.ts'

const problem = findDockerProblem()
t.test('archives', { skip: problem ?? false }, async (t) => {
  const engine = await startDocker()
  if ('skip' in engine) return void t.comment(engine.skip)
  t.teardown(() => engine.close())
  await testArchives(t, 'docker', engine)
})
