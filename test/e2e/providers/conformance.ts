// The conformance suite of providers, over HTTP: everything that works in a local box works in a box of each provider.
// The steps share a coordinator and a box, so those that follow a failed step are skipped.
import { dirname } from 'node:path'
import t, { type Test } from 'tap'
import { CONTAINER_PATHS, NODE_FILES } from '../../../coordinator/providers/container/paths.ts'
import { createAuthority } from '../../../coordinator/secrets/certificates.ts'
import { BROKER_TEST_HOST } from '../../../shared/secret-hosts.ts'
import { connectAttachClient } from '../../support/attach-client.ts'
import { startCoordinatorProcess } from '../../support/coordinator-process.ts'
import { TEST_PROVIDERS, type TestProviderName } from '../../support/engines/providers.ts'
import { createTempDir } from '../../support/temp-dir.ts'
import { LONG_DEADLINE_MS, waitUntil } from '../../support/wait-until.ts'

/** Prints a session, and succeeds as soon as the file `go` exists. */
const INSTALL_FAKE_CLAUDE = `
mkdir -p ~/.local/bin
cat >~/.local/bin/claude <<'EOF'
#!/bin/sh
if [ "$1" = --version ]; then echo '2.1.329 (Claude Code)'; exit 0; fi
cat >~/prompted
echo '{"type":"system","subtype":"init","session_id":"5e551011-0000-4000-8000-000000000001"}'
while [ ! -e ~/go ]; do sleep 0.05; done
echo '{"type":"result","subtype":"success","is_error":false,"result":"done"}'
EOF
chmod +x ~/.local/bin/claude`

/** A process whose memory is read after a freeze: it prints a random value when the file appears. */
const createMemoryCommand = (file: string): string => `
value=$(head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \\n')
echo $value >~/${file}.value
while [ ! -e ~/${file} ]; do sleep 0.05; done
echo $value`

/** Prints numbers from 1. It ends with the last number after the file exists. */
const createCountCommand = (file: string): string => `
i=0
while [ ! -e ~/${file} ]; do i=$((i + 1)); echo $i; sleep 0.02; done
echo end $i`

/**
 * The coordinator answers this request itself, with a certificate of the workspace. The Node of the agent in a container trusts only
 * the authorities of SSL_CERT_FILE, as most programs do.
 */
const REQUEST_WITH_SECRET = `
LD_LIBRARY_PATH=${CONTAINER_PATHS.nodeDir}/${NODE_FILES.libraries}
export LD_LIBRARY_PATH
unset NODE_EXTRA_CA_CERTS
${CONTAINER_PATHS.nodeDir}/${NODE_FILES.program} --use-openssl-ca -e '
  fetch("https://${BROKER_TEST_HOST}/").then(({ status }) => console.log(status))'`

export function testProviderConformance(name: TestProviderName): void {
  t.test(`the provider ${name} conforms`, async (t) => {
    const provider = await TEST_PROVIDERS[name].start()
    if ('skip' in provider) return void t.pass('', { skip: provider.skip })
    t.teardown(provider.close)
    const dataDir = createTempDir(t, 'conformance')
    provider.prepareData(dataDir)
    const coordinator = await startCoordinatorProcess(t, { ...provider.env, BOXWOOD_DATA: dataDir })
    const { sendJson, waitForState } = coordinator
    const ids: string[] = []
    /** Steps after a failed one would wait for states that the box does not get. */
    const step = (title: string, run: (t: Test) => Promise<void>) =>
      t.test(title, { skip: !t.passing() && 'an earlier step failed' }, run)

    const api = (method: string, path: string, body?: unknown) => sendJson(method, `/api/v1${path}`, body)
    const edge = (method: string, path: string, body?: unknown, box = 'life') =>
      sendJson(method, `/v1/box/${box}${path}`, body)
    const exec = (command: string, box = 'life') => coordinator.exec(box, command, { timeoutSeconds: 60 })
    const startDetached = async (command: string): Promise<string> =>
      (await edge('POST', '/exec', { command, detached: true })).processId
    const waitForExit = (id: string) =>
      waitUntil(`${id} has exited`, async () => {
        const status = await edge('GET', `/exec/${id}`)
        return status.running === false && status
      })
    const waitForBox = (id: string, state: string, ms?: number) =>
      waitUntil(
        `the box is ${state}`,
        async () => {
          const { box, job, events } = await api('GET', `/boxes/${id}`)
          if (box.observedState === 'provision_failed')
            throw new Error(`provision_failed: ${events[0]?.reason}`)
          return box.observedState === state && job === null && box
        },
        ms,
      )
    async function waitForNewBox(response: { box?: { id: string } }) {
      if (response.box === undefined) throw new Error(`no box was created: ${JSON.stringify(response)}`)
      ids.push(response.box.id)
      return waitForBox(response.box.id, 'running', LONG_DEADLINE_MS)
    }

    const request = { name: 'life', tier: 'nano', ...(provider.image !== null && { image: provider.image }) }
    const box = await waitForNewBox(await api('POST', '/boxes', request))
    const { id } = box

    await step('runs commands, as root in an image', async (t) => {
      t.equal(box.region, provider.region)
      t.match(await exec('echo out; echo err >&2; exit 3'), { exitCode: 3, stdout: 'out\n', stderr: 'err\n' })
      if (provider.image === null) return
      t.equal(box.image, provider.image)
      t.match(await exec('id -u; echo $HOME; pwd'), { stdout: '0\n/root\n/root\n' })
      t.match(await exec('apt-get update && apt-get install -y boxwood-sample'), { exitCode: 0 })
      t.match(await exec('boxwood-sample'), { stdout: 'installed\n' })
    })

    await step('transfers files', async (t) => {
      t.match(await edge('PUT', '/files', { path: 'note', content: 'content\n' }), { ok: true })
      t.match(await exec('cat note'), { stdout: 'content\n' })
      const bytes = Buffer.from(Array.from({ length: 256 }, (_, i) => i))
      const uploaded = await coordinator.send('PUT', '/v1/box/life/upload?path=bytes', bytes, {
        'content-length': bytes.length,
      })
      t.equal(uploaded.statusCode, 200)
      uploaded.resume()
      const downloaded = await coordinator.send('GET', '/v1/box/life/download?path=bytes')
      t.same(Buffer.concat(await downloaded.toArray()), bytes)
    })

    await step('opens terminals', async (t) => {
      const client = await connectAttachClient(
        `${coordinator.url}/v1/box/life/terminal?cols=90&rows=20`,
        coordinator.authHeaders(),
      )
      t.teardown(() => client.cut())
      await client.waitFor('attached')
      client.sendStdin('stty size; echo rea""dy\n')
      await waitUntil('the terminal works', () => /20 90\r\n[\s\S]*ready\r\n/.test(client.stdout()))
      client.sendStdin('exit 6\n')
      t.match(await client.waitFor('exit'), { exitCode: 6 })
    })

    await step('runs prompts', async (t) => {
      await api('PATCH', `/boxes/${id}`, { env: { ANTHROPIC_API_KEY: 'test' } })
      t.match(await exec(INSTALL_FAKE_CLAUDE), { exitCode: 0 })
      const { run } = await edge('POST', '/prompts', { provider: 'claude', prompt: 'hello' })
      await exec('touch go')
      await waitUntil(
        'the run is done',
        async () => (await edge('GET', `/prompts/${run.id}`)).run.status === 'done',
      )
      t.match(await exec('cat prompted'), { stdout: /hello/ })
    })

    async function mountSecret(boxId: string, name: string) {
      const secret = { name, value: `value-of-${name}`, envName: 'API_TOKEN', hosts: ['api.example.com'] }
      await api('POST', `/boxes/${boxId}/secrets`, secret)
      await waitUntil('the box can use the secret', async () => {
        const { broker } = await api('GET', `/boxes/${boxId}/secrets`)
        if (broker.state === 'failed') throw new Error(broker.message)
        return broker.state === 'ready'
      })
    }

    const { image, smallImage } = provider
    if (image !== null)
      await step('uses secrets', async (t) => {
        const system = createAuthority('an authority of the image', Date.now()).certificate
        const path = '/etc/ssl/certs/ca-certificates.crt'
        await exec(`mkdir -p ${dirname(path)}`)
        t.match(await edge('PUT', '/files', { path, content: system }), { ok: true })
        await mountSecret(id, 'LIFE')
        t.match(await exec('echo $API_TOKEN'), { stdout: /^dcpsec_/ })
        t.ok(String((await exec('cat $SSL_CERT_FILE')).stdout).includes(system))
        t.match(await exec(REQUEST_WITH_SECRET), { stdout: '204\n' })
      })

    if (smallImage !== null)
      await step(
        'has the image of its environment, and uses secrets without certificates of it',
        async (t) => {
          await api('POST', '/environments', { name: 'small', image: smallImage })
          const small = await waitForNewBox(
            await api('POST', '/boxes', { name: 'small', environment: 'small' }),
          )
          t.match(small, { image: smallImage, region: provider.region })
          t.match(await exec('readlink -f /bin/sh', 'small'), { stdout: /busybox\n$/ })
          await mountSecret(small.id, 'SMALL')
          t.match(await exec(REQUEST_WITH_SECRET, 'small'), { stdout: '204\n' })
          await api('DELETE', `/boxes/${small.id}`)
        },
      )

    const memory = await startDetached(createMemoryCommand('print'))
    await waitUntil('the process runs', async () => (await exec('test -s print.value')).exitCode === 0)
    const value = String((await exec('cat print.value')).stdout)
    let isAlive = true

    await step('lists processes', async (t) => {
      const { processes, cpuCount } = await edge('GET', `/processes?processId=${memory}`)
      t.ok(processes.length >= 1, `${processes.length} processes`)
      t.ok(cpuCount > 0)
    })

    await step('suspends and wakes', async (t) => {
      await api('POST', `/boxes/${id}/suspend`)
      const suspended = await waitForBox(id, 'suspended')
      t.equal(suspended.suspendedAs, provider.canFreeze ? 'frozen' : 'stopped')
      t.match(await exec('cat note'), { stdout: 'content\n' }, 'a command wakes the box')
      isAlive &&= provider.canFreeze
      t.match(await edge('GET', `/exec/${memory}`), { running: isAlive })
    })

    await step('resizes', async (t) => {
      t.match(await api('POST', `/boxes/${id}/resize`, { target_tier: 'micro' }), { status: 202 })
      t.equal((await waitForBox(id, 'running')).tier, 'micro')
      isAlive &&= provider.resizesLive
      t.match(await edge('GET', `/exec/${memory}`), { running: isAlive })
      if (!isAlive) return
      await exec('touch print')
      t.equal((await waitForExit(memory)).stdout, value, 'the process has kept its memory')
    })

    await step('snapshots, forks and restores', async (t) => {
      await exec('echo before > state')
      const { snapshot } = await api('POST', '/snapshots', { boxId: id, name: 'first' })
      await waitUntil('the snapshot is available', async () => {
        const { snapshots } = await api('GET', '/snapshots')
        const found = snapshots.find((candidate: { id: string }) => candidate.id === snapshot.id)
        if (found.status === 'failed') throw new Error(`the snapshot failed: ${found.error}`)
        return found.status === 'available'
      })
      await exec('echo after > state')
      const fork = await waitForNewBox(await api('POST', `/boxes/${id}/fork`, { name: 'fork' }))
      const restored = await waitForNewBox(
        await api('POST', `/snapshots/${snapshot.id}/restore`, { name: 'restored' }),
      )
      t.match(await exec('cat state note', 'fork'), { stdout: 'after\ncontent\n' })
      t.match(await exec('cat state note', 'restored'), { stdout: 'before\ncontent\n' })
      t.match(await exec('cat state'), { stdout: 'after\n' })
      for (const copy of [fork, restored]) {
        if (provider.image !== null) {
          t.equal(copy.image, provider.image)
          t.match(await exec('boxwood-sample', copy.hostname), { stdout: 'installed\n' })
        }
        await api('DELETE', `/boxes/${copy.id}`)
        await waitForState(copy.id, 'terminated')
      }
      t.match(await api('DELETE', `/snapshots/${snapshot.id}`), { status: 202 })
    })

    await step('loses no output when the agent and the coordinator are killed', async (t) => {
      const command = await startDetached(createCountCommand('stop-counting'))
      const readLines = async () => String((await edge('GET', `/exec/${command}`)).stdout).split('\n').length
      await waitUntil('the command prints', async () => (await readLines()) > 5)
      const session = { session: 'kept', command: 'exec sleep 1000' }
      const { pid } = await edge('POST', '/terminal/sessions', session)
      // The agent is the parent of the shell.
      t.match(await exec('kill -9 $PPID'), { ok: false, error: { code: 'box_unreachable' } })
      const beforeRestart = await readLines()
      await coordinator.kill('SIGKILL')
      await coordinator.start()
      await waitUntil('the command still prints', async () => (await readLines()) > beforeRestart)
      await exec('touch stop-counting')
      const { stdout, exitCode } = await waitForExit(command)
      const lines = String(stdout).trim().split('\n')
      const count = lines.length - 1
      t.equal(exitCode, 0)
      t.same(lines, [...Array.from({ length: count }, (_, i) => String(i + 1)), `end ${count}`])
      t.match(await edge('GET', '/terminal/sessions'), { sessions: [{ ...session, pid }] })
      t.match(await edge('DELETE', '/terminal/sessions/kept'), { ok: true })
    })

    const { engine } = provider
    if (engine !== null)
      await step('runs again after the engine was killed', async (t) => {
        await engine.kill()
        await engine.start()
        t.match(
          await waitUntil('a command runs', async () => {
            const result = await exec('cat state')
            return result.ok && result
          }),
          { stdout: 'after\n' },
        )
        await waitForBox(id, 'running')
      })

    await step('stops, and starts again with its files', async (t) => {
      await api('POST', `/boxes/${id}/suspend?stop=1`)
      const stopped = await waitForBox(id, 'suspended')
      t.equal(stopped.suspendedAs, 'stopped')
      t.match(await exec('cat state'), { stdout: 'after\n' })
      if (provider.image !== null) t.match(await exec('boxwood-sample'), { stdout: 'installed\n' })
    })

    await step('has the processes of a past moment', async (t) => {
      const { procs } = await waitUntil(
        'the box has a snapshot of its processes',
        async () => {
          const response = await api('GET', `/boxes/${id}/procs-at?t=${new Date().toISOString()}`)
          return response.status === 200 && response
        },
        // The first snapshot is taken after at most a minute.
        LONG_DEADLINE_MS,
      )
      t.ok(procs.length > 0, `${procs.length} processes`)
    })

    await step('leaves nothing after it is deleted', async (t) => {
      await api('DELETE', `/boxes/${id}`)
      for (const boxId of ids) await waitForState(boxId, 'terminated')
      await waitUntil(
        'the archives are removed',
        async () => (await api('GET', '/snapshots?transient=1')).snapshots.length === 0,
      )
      t.same(await provider.listRemains(), [])
    })
  })
}
