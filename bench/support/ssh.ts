// What a user would pick instead: OpenSSH on loopback, a warm ControlMaster connection, directly and through `ssh -R`.
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { end, run, until } from './processes.ts'

const SSHD = '/usr/sbin/sshd'

export type Ssh = {
  /** One command over the warm connection. */
  exec(command: string): Promise<void>
  /** Copies a file to or from the other side; `remote` is a path there. */
  copyTo(local: string, remote: string): Promise<void>
  copyFrom(remote: string, local: string): Promise<void>
  /** `tail -f` of a file on the other side, from its beginning on. @param output of this side, open for writing */
  follow(remote: string, output: number): ChildProcess
}

export type SshBench = {
  /** A ControlMaster connection straight to sshd. */
  direct: Ssh
  /** The same through a reverse tunnel that the far side opened, tuned with -tt (else Nagle's algorithm costs 40 ms). */
  reverse: Ssh
  close(): Promise<void>
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  if (!address || typeof address === 'string') throw new Error('no port')
  return address.port
}

/** null, with the reason printed, where there is no OpenSSH server. */
export async function startSsh(): Promise<SshBench | null> {
  if (!existsSync(SSHD)) {
    console.log(
      'ssh: no /usr/sbin/sshd here, so nothing to compare with (install/test-engines.sh installs it)',
    )
    return null
  }
  const dir = await mkdtemp(join(tmpdir(), 'boxwood-ssh-'))
  const port = await freePort()
  const forwarded = await freePort()
  const user = userInfo().username
  for (const name of ['host', 'user'])
    await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', join(dir, name)])
  await run('cp', [join(dir, 'user.pub'), join(dir, 'authorized')])
  // SHLVL: bash reads ~/.bashrc when sshd starts it at the first level; what stands there is not ssh's cost.
  await writeFile(
    join(dir, 'sshd_config'),
    `ListenAddress 127.0.0.1:${port}
HostKey ${dir}/host
AuthorizedKeysFile ${dir}/authorized
StrictModes no
UsePAM no
PidFile none
PermitRootLogin prohibit-password
Subsystem sftp internal-sftp
SetEnv SHLVL=2
MaxSessions 100
MaxStartups 100
`,
  )
  if (process.getuid?.() === 0) await mkdir('/run/sshd', { recursive: true })
  const clients: ChildProcess[] = []
  const connect = (args: string[]) => clients.push(spawn('ssh', args, { stdio: 'ignore' }))
  const common = (to: number) => [
    ...['-F', 'none', '-i', join(dir, 'user'), '-o', 'StrictHostKeyChecking=no', '-o', 'LogLevel=ERROR'],
    ...['-o', `UserKnownHostsFile=${dir}/known`, '-p', String(to)],
  ]
  const host = `${user}@127.0.0.1`

  async function connection(to: number): Promise<Ssh> {
    const socket = join(dir, `master-${to}`)
    connect([...common(to), '-tt', '-M', '-S', socket, host, 'sleep 3600'])
    await until('the ssh master', 10_000, async () => (existsSync(socket) ? true : undefined))
    const over = ['-F', 'none', '-o', `ControlPath=${socket}`]
    return {
      exec: (command) => run('ssh', [...over, host, command]),
      copyTo: (local, remote) => run('scp', ['-q', ...over, local, `${host}:${remote}`]),
      copyFrom: (remote, local) => run('scp', ['-q', ...over, `${host}:${remote}`, local]),
      follow: (remote, output) =>
        spawn('ssh', [...over, host, `tail -f -c +1 ${remote}`], { stdio: ['ignore', output, 'ignore'] }),
    }
  }

  const server = spawn(SSHD, ['-D', '-e', '-f', join(dir, 'sshd_config')], { stdio: 'ignore' })
  await until('sshd', 10_000, () =>
    run('ssh', [...common(port), host, 'true']).then(
      () => true,
      () => undefined,
    ),
  )
  connect([...common(port), '-tt', '-R', `127.0.0.1:${forwarded}:127.0.0.1:${port}`, host, 'sleep 3600'])
  await until('the reverse tunnel', 10_000, () =>
    run('ssh', [...common(forwarded), host, 'true']).then(
      () => true,
      () => undefined,
    ),
  )
  return {
    direct: await connection(port),
    reverse: await connection(forwarded),
    async close() {
      // Only asked to end, the tunnel's client may stay for as long as nothing else happens on it.
      for (const client of clients.reverse()) await end(client, 'SIGKILL')
      await end(server)
      await rm(dir, { recursive: true, force: true })
    },
  }
}
