// What box upgrade reads of the running coordinator: its service, and its variables.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import t from 'tap'
import { parseCgroup, readEnvironment } from '../../cli/local/running-process.ts'

t.test('a coordinator in a service of systemd is restarted by systemctl', async (t) => {
  for (const [cgroup, command] of [
    ['0::/system.slice/boxwood.service\n', 'systemctl restart boxwood.service'],
    [
      '12:pids:/a\n1:name=systemd:/system.slice/boxwood.service\n0::/x\n',
      'systemctl restart boxwood.service',
    ],
    [
      '0::/user.slice/user-1000.slice/user@1000.service/app.slice/my-boxwood.service\n',
      'systemctl --user restart my-boxwood.service',
    ],
    ['0::/system.slice/ssh.service\n', null],
    ['0::/user.slice/user-1000.slice/session-3.scope\n', null],
    ['0::/\n', null],
    ['', null],
  ] as const)
    t.equal(parseCgroup(cgroup), command, cgroup)
})

t.test('the variables of a coordinator are read from its process', async (t) => {
  const env = {
    BOXWOOD_PUBLIC_URL: 'https://a.example/?b=c',
    BOXWOOD_COMMAND: 'box',
    DOCKER_HOST: 'unix:///run/docker.sock',
    CONTAINER_HOST: 'unix:///run/podman.sock',
    INCUS_SOCKET: '/run/incus.sock',
    PGPASSWORD: 'x',
    OTHER: 'y',
  }
  const child = spawn('/bin/sh', ['-c', 'echo started; read line'], {
    env,
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  await once(child.stdout, 'data')
  const { BOXWOOD_COMMAND: _command, OTHER: _other, ...expected } = env
  t.same(readEnvironment(child.pid ?? 0), expected)
  child.stdin.end()
  await once(child, 'exit')
  t.same(readEnvironment(child.pid ?? 0), {}, 'a process that has exited')
})
