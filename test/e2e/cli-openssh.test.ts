// OpenSSH through box ssh-config to a real box: ssh, scp, rsync and git.
import { type ExecFileException, execFile, execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { runBox } from '../cli/run-box.ts'
import { startCoordinatorProcess } from '../support/coordinator-process.ts'
import { createSeededRandom, randomBuffer } from '../support/random.ts'
import { requires } from '../support/requires.ts'
import { createTempDir } from '../support/temp-dir.ts'
import { DEADLINE_MS, waitUntil } from '../support/wait-until.ts'

const skip = requires('ssh', 'sshd', 'scp', 'ssh-keygen')

if (skip !== false) t.pass('OpenSSH', { skip })
else {
  const coordinator = await startCoordinatorProcess(t, { BOXWOOD_LOG: 'silent' })
  const { id, hostname: name } = await coordinator.waitForFirstBox()
  const dir = createTempDir(t, 'openssh')
  const key = readFileSync(join(coordinator.dataDir, 'owner.key'), 'utf8').trim()
  const env = {
    ...process.env,
    XDG_CONFIG_HOME: dir,
    BOXWOOD_URL: coordinator.url,
    BOXWOOD_API_KEY: key,
  }
  const box = (...args: string[]) =>
    runBox(null, args, { env: { XDG_CONFIG_HOME: dir, BOXWOOD_DATA: coordinator.dataDir } })
  const config = join(dir, 'config')
  const host = `box-${name}`
  writeFileSync(config, (await box('ssh-config', name)).stdout)

  const run = (program: string, args: string[], stdin: Buffer | string = '', options: object = {}) =>
    new Promise<{ code: number; stdout: Buffer; stderr: string }>((resolve) => {
      const child = execFile(
        program,
        args,
        { encoding: 'buffer', maxBuffer: 64 * 1024 * 1024, timeout: DEADLINE_MS, env, ...options },
        (error: ExecFileException | null, stdout, stderr) =>
          resolve({ code: Number(error?.code ?? 0), stdout, stderr: stderr.toString() }),
      )
      child.stdin?.end(stdin)
    })
  const ssh = (command: string, stdin?: Buffer | string) => run('ssh', ['-F', config, host, command], stdin)

  t.test('ssh runs a command with its exit code, stdin and environment', async (t) => {
    const result = await ssh('id -un; echo $HOME; cat >&2; exit 7', 'typed')
    t.match(result, { code: 7, stderr: 'typed' })
    t.match(await coordinator.exec(name, 'id -un; echo $HOME'), { stdout: result.stdout.toString() })
  })

  t.test('ssh finds the programs that package managers install, and has their settings', async (t) => {
    const command = 'echo $PATH; echo $NPM_CONFIG_GLOBALCONFIG $PIP_BREAK_SYSTEM_PACKAGES'
    const [path, settings] = (await ssh(command)).stdout.toString().split('\n')
    t.match(path, /^\S+\/\.local\/bin:\S+\/\.cargo\/bin:/)
    t.match(settings, /^\S*\/etc\/npmrc 1$/)
    // A login shell replaces PATH.
    t.match((await ssh('bash -lc "echo \\$PATH"')).stdout.toString(), /^\S+\/\.local\/bin:\S+\/\.cargo\/bin:/)
  })

  t.test('binary data passes in both directions', async (t) => {
    const data = randomBuffer(5 * 1024 * 1024, createSeededRandom(1))
    const { code, stdout } = await ssh('cat', data)
    t.equal(code, 0)
    t.ok(stdout.equals(data))
  })

  t.test('five connections at the same time', async (t) => {
    const results = await Promise.all(Array.from({ length: 5 }, (_, index) => ssh(`echo ${index}`)))
    t.same(
      results.map(({ code, stdout }) => [code, stdout.toString()]),
      results.map((_, index) => [0, `${index}\n`]),
    )
  })

  t.test('background processes continue when ssh has exited', async (t) => {
    t.match(await ssh('nohup sh -c "until test -e go; do sleep 0.05; done; touch done" >/dev/null 2>&1 &'), {
      code: 0,
    })
    await waitUntil('sshd has exited', async () => {
      const { commands } = await coordinator.sendJson('GET', `/api/v1/boxes/${id}/commands`)
      return commands.every(
        ({ command, status }: { command: string; status: string }) =>
          !command.startsWith('# box ssh-proxy') || status !== 'running',
      )
    })
    await coordinator.exec(name, 'touch go')
    await waitUntil(
      'the process continues',
      async () => (await coordinator.exec(name, 'test -e done')).exitCode === 0,
    )
  })

  t.test('scp copies a directory in both directions', async (t) => {
    const source = join(dir, 'source')
    mkdirSync(join(source, 'sub'), { recursive: true })
    writeFileSync(join(source, 'sub/file'), 'content\n')
    t.match(await run('scp', ['-q', '-F', config, '-r', source, `${host}:`]), { code: 0, stderr: '' })
    t.match(await coordinator.exec(name, 'cat source/sub/file'), { stdout: 'content\n' })
    t.match(await run('scp', ['-q', '-F', config, '-r', `${host}:source`, join(dir, 'copy')]), { code: 0 })
    t.equal(readFileSync(join(dir, 'copy/sub/file'), 'utf8'), 'content\n')
  })

  t.test('rsync copies a directory', { skip: requires('rsync') }, async (t) => {
    const source = join(dir, 'rsync')
    mkdirSync(source)
    writeFileSync(join(source, 'file'), 'synchronized\n')
    t.match(await run('rsync', ['-a', '-e', `ssh -F ${config}`, `${source}/`, `${host}:rsync/`]), {
      code: 0,
    })
    t.match(await coordinator.exec(name, 'cat rsync/file'), { stdout: 'synchronized\n' })
  })

  t.test('git clones from a box', { skip: requires('git') }, async (t) => {
    const create =
      'git init -q repo && cd repo && git -c user.name=n -c user.email=e commit -q --allow-empty -m "first commit"'
    t.match(await coordinator.exec(name, create), { exitCode: 0 })
    const gitEnv = { ...env, GIT_SSH_COMMAND: `ssh -F ${config}` }
    t.match(await run('git', ['clone', '-q', `${host}:repo`, join(dir, 'clone')], '', { env: gitEnv }), {
      code: 0,
    })
    t.match(
      execFileSync('git', ['-C', join(dir, 'clone'), 'log', '--format=%s'], { encoding: 'utf8' }),
      'first commit\n',
    )
  })
}
