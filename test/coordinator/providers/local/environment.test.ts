// The environment variables of a local box: the agent's own, and none of the coordinator's.
import { listCgroupPids } from '../../../../agent/vitals/cgroup-pids.ts'
import { readMachine } from '../../../../coordinator/providers/local/machine-file.ts'
import { testEachLevel } from './each-level.ts'
import { startBox, waitForFileText } from './support.ts'

process.env.COORDINATOR_SECRET = 'secret'
process.env.NODE_EXTRA_CA_CERTS = '/etc/ssl/certs/ca-certificates.crt'

testEachLevel("passes the agent's variables and none of the coordinator's", async (test, level) => {
  const script = 'env >"$HOME/out"; mv "$HOME/out" "$HOME/env"'
  const { inHome, spec, paths, isolation } = await startBox(test, { level, script })
  const text = await waitForFileText(inHome('env'))
  const env = Object.fromEntries(
    text
      .trim()
      .split('\n')
      .map((line) => line.split(/=(.*)/s).slice(0, 2)),
  )
  test.match(env, {
    BOXWOOD_BOX: spec.boxId,
    BOXWOOD_URL: spec.coordinatorUrl,
    BOXWOOD_CPUS: '1',
    BOXWOOD_MEMORY_BYTES: String(1024 ** 3),
    BOXWOOD_DISK_BYTES: String(10 * 1000 ** 3),
    BOXWOOD_NETWORK: 'host',
    BOXWOOD_RECONNECT_MAX_MS: '2000',
    BOXWOOD_HOME: env.HOME ?? 'HOME is missing',
    BOXWOOD_STATE: level === 'process' ? paths.state : '/var/lib/boxwood',
    USER: 'box',
    LANG: 'C.UTF-8',
  })
  test.equal(env.BOXWOOD_PRIVATE_PIDS, level === 'process' ? undefined : '1')
  test.equal(env.BOXWOOD_OWN_UID, process.getuid?.() === 0 ? '1' : undefined)
  const { cgroups = [], init } = (await readMachine(paths)) ?? {}
  test.equal(env.BOXWOOD_CGROUP, level === 'process' ? cgroups[0] : undefined)
  if (env.BOXWOOD_CGROUP !== undefined) test.ok(listCgroupPids(env.BOXWOOD_CGROUP).includes(init?.pid ?? 0))
  test.equal(env.OMP_NUM_THREADS, isolation?.limits.includes('cpu') ? '1' : undefined, 'for nproc')
  test.notOk('COORDINATOR_SECRET' in env)
  test.notOk('NODE_EXTRA_CA_CERTS' in env)
})
