// What another program removes from an engine, and calls that the engine does late: a box keeps its home, and is deleted.
import { randomUUID } from 'node:crypto'
import { request } from 'node:http'
import { buffer, text } from 'node:stream/consumers'
import t from 'tap'
import {
  getContainerName,
  getHomeVolume,
  getStateVolume,
} from '../../../../coordinator/providers/docker/names.ts'
import { EngineHttp } from '../../../../coordinator/providers/engine-http/client.ts'
import { findDockerProblem, startDocker } from '../../../support/engines/docker.ts'
import { startEngineProxy } from '../../../support/engines/engine-proxy.ts'
import { createMachines, createSpec } from './support.ts'

const DEPLOYMENT = '0123456789abcdef'
const CREATE = '/containers/create?name=boxwood-'

t.test('repairs', { skip: findDockerProblem() ?? false }, async (t) => {
  const docker = await startDocker()
  if ('skip' in docker) return void t.comment(docker.skip)
  t.teardown(() => docker.close())
  const proxy = await startEngineProxy(docker)
  t.teardown(() => proxy.close())
  const command = (...args: string[]) => docker.command(args).trim()
  const http = new EngineHttp('Docker', { kind: 'unix', path: proxy.socket })
  t.teardown(() => http.close())
  const log = { debug() {}, info() {}, warn() {} }
  const engine = { kind: 'docker', http, deploymentId: DEPLOYMENT, log } as const
  const { machines } = createMachines(engine)
  const start = (boxId: string) => machines.start({ ...createSpec(boxId), agentToken: 'token' })
  const listObjects = () =>
    [
      ['ps', '--all', '--format={{.Names}}'],
      ['volume', 'ls', '--quiet'],
      ['network', 'ls', '--format={{.Name}}'],
    ]
      .flatMap((list) => command(...list).split('\n'))
      .filter((name) => name.startsWith('boxwood-'))

  /** A machine with a file in its home. Its init ends at once, because there are no files of the agent. */
  async function createMachine(): Promise<string> {
    const boxId = randomUUID()
    await machines.create(createSpec(boxId))
    await start(boxId)
    command('run', '--rm', `--volume=${getHomeVolume(boxId)}:/home`, 'busybox', 'touch', '/home/kept')
    return boxId
  }
  const listHome = (boxId: string) =>
    command('run', '--rm', `--volume=${getHomeVolume(boxId)}:/home`, 'busybox', 'ls', '/home')

  async function destroy(boxId: string): Promise<void> {
    await machines.destroy(boxId)
    t.strictSame(listObjects(), [])
  }

  await t.test('a container that was removed is created again with the home', async (t) => {
    const boxId = await createMachine()
    command('system', 'prune', '--all', '--force')
    t.notMatch(command('ps', '--all'), boxId)
    t.equal(await machines.inspect(boxId), 'stopped')
    t.match(await start(boxId), { repair: /its home is complete, other files are lost/ })
    t.equal(listHome(boxId), 'kept')
    t.notOk((await start(boxId)).repair)
    t.same(await machines.create(createSpec(boxId)), { isolation: (await start(boxId)).isolation })
    t.equal(listHome(boxId), 'kept', 'a repeated creation changes nothing')
    await destroy(boxId)
  })

  await t.test('a machine without a home does not exist', async (t) => {
    const boxId = await createMachine()
    command('rm', '--force', getContainerName(boxId))
    command('volume', 'rm', getHomeVolume(boxId))
    t.equal(await machines.inspect(boxId), 'absent')
    await t.rejects(start(boxId), {
      name: 'PermanentProviderError',
      message: /uses another engine than before/,
    })
    await destroy(boxId)
  })

  await t.test('volumes of an interrupted creation are no machine', async (t) => {
    const boxId = randomUUID()
    await machines.create(createSpec(boxId))
    command('rm', getContainerName(boxId))
    t.equal(await machines.inspect(boxId), 'absent')
    await destroy(boxId)
  })

  await t.test('a network that was removed is created again', async () => {
    const boxId = await createMachine()
    command('network', 'prune', '--force')
    await start(boxId)
    await start(boxId)
    await destroy(boxId)
  })

  await t.test('a helper of an interrupted call does not prevent the removal of the volumes', async () => {
    const boxId = await createMachine()
    const labels = ['--label=boxwood.role=helper', `--label=boxwood.coordinator=${DEPLOYMENT}`]
    command('create', ...labels, `--volume=${getHomeVolume(boxId)}:/home`, 'busybox')
    await destroy(boxId)
  })

  await t.test(
    'a container that the engine creates late does not get the files of the next call',
    async (t) => {
      const boxId = randomUUID()
      const late = Promise.withResolvers<{ path: string; body: Buffer }>()
      proxy.intercept((incoming, response) => {
        const { url: path = '' } = incoming
        if (!path.startsWith(CREATE)) return
        proxy.intercept(() => undefined)
        void buffer(incoming).then((body) => {
          late.resolve({ path, body })
          response.writeHead(503).end('{"message":"late"}')
        })
        return 'answered'
      })
      await t.rejects(machines.create(createSpec(boxId)), /late/)
      const { path, body } = await late.promise
      // The next call has removed the volumes, and its coordinator was killed.
      command('volume', 'rm', getHomeVolume(boxId), getStateVolume(boxId))
      const headers = { 'content-type': 'application/json' }
      const answer = Promise.withResolvers<string>()
      request({ socketPath: docker.socket, method: 'POST', path, headers }, (response) =>
        answer.resolve(text(response)),
      ).end(body)
      t.match(await answer.promise, /"Id"/)
      const findId = () => command('container', 'inspect', '--format={{.Id}}', getContainerName(boxId))
      const lateId = findId()
      await machines.create(createSpec(boxId))
      const id = findId()
      t.not(id, lateId)
      await machines.create(createSpec(boxId))
      t.equal(findId(), id)
      await destroy(boxId)
    },
  )
})
