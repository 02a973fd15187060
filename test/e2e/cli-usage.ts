// box top, ports, metrics and ps-at with a real coordinator and box.
import t from 'tap'
import { metricsSchema } from '../../shared/api/metrics.ts'
import { runBox } from '../cli/run-box.ts'
import { waitUntil } from '../support/wait-until.ts'
import { sharedCoordinator } from './shared-coordinator.ts'

/** The first path is that in boxes with their own view of the file system. */
const SERVER = `node=/run/boxwood/bin/node; [ -x "$node" ] || node='${process.execPath}'
exec "$node" -e "require('node:net').createServer().listen(0, '127.0.0.1', function () { console.log(this.address().port) })"`

t.test('shows the processes, ports and usage of a box, also while it is suspended', async (t) => {
  const { url, key, box: fig } = sharedCoordinator
  const box = (...args: string[]) => runBox(url, args, { env: { BOXWOOD_API_KEY: key } })
  const name = fig.hostname
  const id = (await box('exec', '-d', name, '--', SERVER)).stdout.trim()
  const port = await waitUntil('the server listens', async () => (await box('logs', name, id)).stdout.trim())

  const ports = await waitUntil('the box reports the port', async () => {
    const { stdout } = await box('ports', name)
    return new RegExp(`^${port} +\\d+ `, 'm').test(stdout) && stdout
  })
  const pid = new RegExp(`^${port} +(\\d+)`, 'm').exec(ports)?.[1]

  const top = await box('top', name, '-n', '1')
  t.equal(top.code, 0)
  t.match(top.stdout, new RegExp(`^${pid} .* ${id.slice(0, 10)} .*createServer`, 'm'))
  const one = await box('top', name, id.slice(0, 12), '--json')
  t.match(JSON.parse(one.stdout), { processes: [{ pid: Number(pid), processId: id }] })

  const { stdout } = await box('metrics', name, '--last', '10m', '--json')
  t.equal(metricsSchema.parse(JSON.parse(stdout)).res, 30)
  t.match(await box('metrics', name, '--last', '24h', '--csv'), {
    code: 0,
    stdout: /^time,cpu_pct,cpu_pct_max,/,
  })
  t.match(await box('ps-at', name, '2h', 'ago'), {
    code: 5,
    stderr: /no process snapshot within five minutes/,
  })

  t.equal((await box('stop', name)).code, 0)
  t.match(await box('ports', name), { code: 0, stdout: '', stderr: /is suspended: no process listens/ })
  t.match(await box('top', name), { code: 1, stderr: /is not running\. Start it/ })
  t.match(await box('metrics', name), { code: 0 })
})
