// Boxes of a real Docker engine: images of any C library, what continues through which change, and isolation.
import t from 'tap'
import { startTestCoordinator } from '../../../support/coordinator.ts'
import { findDockerProblem, startDocker } from '../../../support/engines/docker.ts'

const problem = findDockerProblem()
if (problem !== undefined) t.plan(0, { skip: problem } as never)
else await run()

async function run() {
  const engine = process.env.DK ? { env: { BOXWOOD_DOCKER_HOST: 'unix:///tmp/dk/run/docker.sock' }, close: async () => undefined } : await startDocker()
  if ('skip' in engine) {
    t.plan(0, engine.skip)
    return
  }
  t.teardown(() => engine.close())
  const coordinator = await startTestCoordinator(t, {
    machines: 'local',
    env: { ...engine.env, BOXWOOD_REGIONS: 'us-west-2=docker', BOXWOOD_LOG: 'debug' },
  })
  const create = async (image: string, tier = 'nano') => {
    const { json, status, text } = await coordinator.api('POST', '/boxes', { image, tier })
    if (status !== 202) throw new Error(text)
    return coordinator.waitForState(json.box.id, 'running')
  }
  const exec = async (box: string, command: string) =>
    (await coordinator.edge(box, 'POST', '/exec', { command })).json

  for (const image of ['debian:12', 'busybox', 'musl']) {
    await t.test(image, async (t) => {
      const box = await create(image)
      t.comment(JSON.stringify(box))
      t.comment(JSON.stringify(await exec(box.hostname, 'id; pwd; env; ls -la / /root /opt/boxwood; ps -ef || ps; ip a; ulimit -a; cat /proc/1/status | grep Cap')))
      const id = box.id
      t.equal((await coordinator.api('DELETE', `/boxes/${id}`)).status, 202)
      await coordinator.waitForState(id, 'terminated')
    })
  }
}
