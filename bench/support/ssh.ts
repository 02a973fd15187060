// Starts the baseline: OpenSSH on loopback with two ControlMaster connections, one direct and one through `ssh -R`.
import { type ChildProcess, type ChildProcessByStdio, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { waitUntil } from '../../test/support/wait-until.ts'
import { runProgram, terminate } from './processes.ts'

const SSHD = '/usr/sbin/sshd'

export type SshConnection = {
  exec(command: string): Promise<void>
  copyTo(localPath: string, remotePath: string): Promise<void>
  copyFrom(remotePath: string, localPath: string): Promise<void>
  /** Runs `tail -f` on a remote file, from its first byte. `output` is a local descriptor that is open for writing. */
  followFile(remotePath: string, output: number): ChildProcess
  /** Runs a command in a terminal. Its client reads keys from a pipe. */
  startTerminal(command: string): ChildProcessByStdio<Writable, Readable, null>
  /** The program and arguments that run a command without a terminal. */
  commandLine(command: string): string[]
}

export type SshBaseline = {
  /** A connection straight to sshd. */
  direct: SshConnection
  /** A connection through a reverse tunnel that the remote side opened. */
  reverse: SshConnection
  close(): Promise<void>
}

async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  if (!address || typeof address === 'string') throw new Error('found no free port')
  return address.port
}

/** Prints the reason and returns null when no OpenSSH server is installed. */
export async function startSsh(): Promise<SshBaseline | null> {
  if (!existsSync(SSHD)) {
    console.log(
      `${SSHD} is not installed; skipping the comparison with ssh. To install it on Debian, run install/test-packages.sh as root.`,
    )
    return null
  }
  // Disposed when the start fails. After the start, close() disposes it.
  await using cleanup = new AsyncDisposableStack()
  const dir = await mkdtemp(join(tmpdir(), 'boxwood-ssh-'))
  cleanup.defer(() => rm(dir, { recursive: true, force: true }))
  const serverPort = await findFreePort()
  const tunnelPort = await findFreePort()
  const user = userInfo().username
  for (const name of ['host', 'user'])
    await runProgram('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', join(dir, name)])
  await runProgram('cp', [join(dir, 'user.pub'), join(dir, 'authorized_keys')])
  // SHLVL=2: when sshd starts bash with a lower level, bash reads ~/.bashrc, which would count as a cost of ssh.
  await writeFile(
    join(dir, 'sshd_config'),
    `ListenAddress 127.0.0.1:${serverPort}
HostKey ${dir}/host
AuthorizedKeysFile ${dir}/authorized_keys
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
  // -tt on the tunnel and on the ControlMaster connections: OpenSSH disables Nagle's algorithm only for sessions with
  // a TTY. With Nagle's algorithm each command through the tunnel takes 40 ms longer.
  function startSshClient(args: string[]) {
    const client = spawn('ssh', ['-tt', ...args], { stdio: 'ignore' })
    // SIGKILL: after SIGTERM the client of an idle tunnel may not exit.
    cleanup.defer(() => terminate(client, 'SIGKILL'))
  }
  const loginOptions = (port: number) => [
    ...['-F', 'none', '-i', join(dir, 'user'), '-o', 'StrictHostKeyChecking=no', '-o', 'LogLevel=ERROR'],
    ...['-o', `UserKnownHostsFile=${dir}/known_hosts`, '-p', String(port)],
  ]
  const host = `${user}@127.0.0.1`
  const waitForLogin = (description: string, port: number) =>
    waitUntil(description, () =>
      runProgram('ssh', [...loginOptions(port), host, 'true']).then(
        () => true,
        () => false,
      ),
    )

  async function openConnection(port: number): Promise<SshConnection> {
    const socket = join(dir, `master-${port}`)
    startSshClient([...loginOptions(port), '-M', '-S', socket, host, 'sleep 3600'])
    await waitUntil('the ControlMaster socket exists', () => existsSync(socket))
    const options = ['-F', 'none', '-o', `ControlPath=${socket}`]
    return {
      exec: (command) => runProgram('ssh', [...options, host, command]),
      copyTo: (localPath, remotePath) =>
        runProgram('scp', ['-q', ...options, localPath, `${host}:${remotePath}`]),
      copyFrom: (remotePath, localPath) =>
        runProgram('scp', ['-q', ...options, `${host}:${remotePath}`, localPath]),
      followFile: (remotePath, output) =>
        spawn('ssh', [...options, host, `tail -f -c +1 ${remotePath}`], {
          stdio: ['ignore', output, 'ignore'],
        }),
      startTerminal: (command) =>
        spawn('ssh', ['-tt', ...options, host, command], { stdio: ['pipe', 'pipe', 'ignore'] }),
      commandLine: (command) => ['ssh', ...options, host, command],
    }
  }

  const server = spawn(SSHD, ['-D', '-e', '-f', join(dir, 'sshd_config')], { stdio: 'ignore' })
  cleanup.defer(() => terminate(server))
  await waitForLogin('sshd accepts logins', serverPort)
  const forwarding = `127.0.0.1:${tunnelPort}:127.0.0.1:${serverPort}`
  startSshClient([...loginOptions(serverPort), '-R', forwarding, host, 'sleep 3600'])
  await waitForLogin('sshd accepts logins through the reverse tunnel', tunnelPort)
  const direct = await openConnection(serverPort)
  const reverse = await openConnection(tunnelPort)
  const cleanupOnClose = cleanup.move()
  return { direct, reverse, close: () => cleanupOnClose.disposeAsync() }
}
