// The checks of the install script: each problem of a machine gets a sentence, and nothing stays behind.

import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:https'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createSmallBundles, startBundleServer, TOKEN } from '../support/bundle-server.ts'
import { findProgram, type Program, requires } from '../support/requires.ts'
import { downloadScript, type InstallerOptions, listTree, runInstaller } from '../support/run-installer.ts'
import { mountSmallDisk, SKIP_MOUNT } from '../support/small-disk.ts'
import { createTempDir } from '../support/temp-dir.ts'

const bundles = createSmallBundles(t)
const server = await startBundleServer(t, bundles)
const isRoot = process.getuid?.() === 0
const SYSTEM_DIRS = ['/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin']

type Shell = { name: Program; command: string[] }
const ALL_SHELLS: Shell[] = [
  { name: 'dash', command: ['dash'] },
  { name: 'bash', command: ['bash', '--posix'] },
  { name: 'busybox', command: ['busybox', 'sh'] },
]
const SHELLS = ALL_SHELLS.filter(({ name }) => findProgram(name) !== undefined)

/** A directory of programs for the PATH: name → the text of a shell script. */
function createPrograms(test: Test, programs: Record<string, string>): string {
  const dir = createTempDir(test, 'programs')
  for (const [name, text] of Object.entries(programs)) {
    writeFileSync(join(dir, name), `#!/bin/sh\n${text}\n`)
    chmodSync(join(dir, name), 0o755)
  }
  return dir
}

/** A PATH with the programs of this machine, apart from some. */
function createPathWithout(test: Test, names: readonly string[]): string {
  const dir = createTempDir(test, 'path')
  const added = new Set<string>(names)
  for (const source of SYSTEM_DIRS.filter((path) => existsSync(path)))
    for (const name of readdirSync(source)) {
      if (!added.has(name)) symlinkSync(join(source, name), join(dir, name))
      added.add(name)
    }
  return dir
}

async function expectSentence(
  test: Test,
  sentence: RegExp,
  options: InstallerOptions & { prefix?: string } = {},
) {
  const home = createTempDir(test, 'home')
  const { prefix = join(home, 'opt/boxwood'), args = [], ...rest } = options
  const result = await runInstaller(server.url, home, {
    ...rest,
    args: ['--token', TOKEN, '--prefix', prefix, ...args],
  })
  test.match(result, { status: 1, stderr: sentence })
  test.match(result.stderr, /^boxwood: [^\n]+\n$/, 'one line')
  test.same(listTree(home), [])
}

/** Problems that programs of the machine report. */
const MACHINES: { name: string; programs: Record<string, string>; sentence: RegExp }[] = [
  {
    name: 'another system',
    programs: { uname: 'echo Darwin' },
    sentence: /Boxes run Linux; this machine runs Darwin\./,
  },
  {
    name: 'another architecture',
    programs: { uname: 'case $1 in -s) echo Linux ;; -m) echo armv7l ;; *) echo 6.1.0 ;; esac' },
    sentence: /no agent for the architecture armv7l\. Machines with x86_64 or aarch64 can/,
  },
  {
    name: 'an old kernel',
    programs: { uname: 'case $1 in -s) echo Linux ;; -m) echo x86_64 ;; *) echo 3.10.0-1160.el7 ;; esac' },
    sentence: /The kernel of this machine is 3\.10\.0-1160\.el7; the agent needs 4\.18 or newer\. Upgrade/,
  },
  {
    name: 'an old glibc',
    programs: { getconf: 'echo glibc 2.17' },
    sentence: /has glibc 2\.17; the agent needs 2\.28 or newer\. Upgrade/,
  },
  {
    name: 'a platform that the coordinator does not have',
    programs: { uname: 'case $1 in -s) echo Linux ;; -m) echo aarch64 ;; *) echo 6.1.0 ;; esac' },
    sentence: /boxwood platform add linux-arm64|ld-linux-aarch64\.so\.1 does not exist/,
  },
  {
    name: 'a clock that is behind',
    programs: { date: 'case $1 in +%s) echo 1000000000 ;; *) echo Sun Sep 9 2001 ;; esac' },
    sentence: /The clock of this machine is wrong: it is Sun Sep 9 2001, .* Set the clock/,
  },
  {
    name: 'a small disk',
    programs: { df: 'echo header; echo disk 100000 99000 1000 99% /' },
    sentence: /has 1 MB free; the installation needs \d+ MB\. Free some space/,
  },
  {
    name: 'a missing library',
    programs: {
      tar: 'while [ $# -gt 0 ]; do [ "$1" = -C ] && dir=$2; shift; done\nprintf "#!/bin/sh\\necho libstdc++.so.6: cannot open shared object file >&2; exit 127\\n" >$dir/node; chmod 755 $dir/node',
    },
    sentence: /A library is missing: libstdc\+\+\.so\.6: .*apt-get install libstdc\+\+6/,
  },
]

for (const { name: shell, command } of SHELLS)
  t.test(`a machine that cannot be a box, in ${shell}`, async (test) => {
    for (const { name, programs, sentence } of MACHINES)
      await test.test(name, async (test) => {
        const PATH = `${createPrograms(test, programs)}:${SYSTEM_DIRS.join(':')}`
        await expectSentence(test, sentence, { shell: command, env: { PATH } })
      })
  })

t.test('missing programs', async (test) => {
  for (const [names, sentence] of [
    [['tar'], /The program tar is missing\. Install it/],
    [['gzip'], /The program gzip is missing\. Install it/],
    [['curl', 'wget'], /Neither curl nor wget is installed\. Install one/],
    [['sha256sum', 'openssl'], /Neither sha256sum nor openssl is installed\. Install one/],
  ] as const)
    await expectSentence(test, sentence, { env: { PATH: createPathWithout(test, names) } })
})

/** The same problems, which curl and wget report in different ways. */
for (const program of ['curl', 'wget'] as const)
  t.test(`connections with ${program}`, { skip: requires(program) }, async (test) => {
    const PATH = createPathWithout(test, program === 'curl' ? [] : ['curl'])
    const expectRefusal = (sentence: RegExp, options: InstallerOptions) =>
      expectSentence(test, sentence, { ...options, env: { PATH, ...options.env } })
    const useUrl = (url: string) => ({ args: ['--url', url] })
    await expectRefusal(
      /The name box\.invalid cannot be resolved\..*resolv\.conf/,
      useUrl('http://box.invalid'),
    )
    await expectRefusal(
      /The coordinator at 127\.0\.0\.1:9 cannot be reached: .*Check that it runs/,
      useUrl('http://127.0.0.1:9'),
    )
    const script = (await downloadScript(server.url)).replace(/ [0-9a-f]{16} /, ` ${'0'.repeat(16)} `)
    await expectRefusal(/does not have this agent bundle any more/, { script })
  })

// wget repeats its request for minutes.
t.test('a proxy that refuses the connection', { skip: requires('curl') }, async (test) => {
  await expectSentence(test, /The proxy|cannot be reached/, {
    args: ['--url', 'https://box.example'],
    env: { https_proxy: server.url },
  })
})

t.test('a certificate of an unknown authority, and a file without certificates', async (test) => {
  const tls = join(import.meta.dirname, '../fixtures/tls')
  const https = createServer({
    key: readFileSync(join(tls, 'key.pem')),
    cert: readFileSync(join(tls, 'cert.pem')),
  })
  await new Promise<void>((resolve) => https.listen(0, '127.0.0.1', resolve))
  test.teardown(() => https.close())
  const address = https.address()
  const port = typeof address === 'object' ? address?.port : 0
  await expectSentence(test, /The certificate of localhost:\d+ is not accepted: .*pass --ca FILE/, {
    args: ['--url', `https://localhost:${port}`],
  })
  await expectSentence(test, /The file \S+ of --ca has no certificate\./, { args: ['--ca', '/etc/passwd'] })
  await expectSentence(test, /The file \/missing of --ca cannot be read\./, { args: ['--ca', '/missing'] })
})

t.test(
  'a disk that fills during the installation, a read-only one and one without execution',
  async (test) => {
    const [platform = 'linux-x64'] = bundles.platforms()
    const { size = 0, unpackedSize = 0 } = (await bundles.get(platform)) ?? {}
    // The archive fits on the disk, and its content does not.
    const disk = mountSmallDisk(test, Math.round((size + unpackedSize / 2) / 1024 / 1024))
    if (disk === undefined) return test.pass('the disk of the installation', { skip: SKIP_MOUNT })
    const prefix = join(disk.dir, 'boxwood')
    const large = createPrograms(test, { df: 'echo header; echo disk 9000000 0 9000000 0% /' })
    const env = { PATH: `${large}:${SYSTEM_DIRS.join(':')}` }
    await expectSentence(test, /The disk of \S+ is full\. The installation needs \d+ MB/, { prefix, env })
    test.same(listTree(disk.dir), [])
    const remount = (options: string) =>
      spawnSync('mount', ['-o', `remount,${options}`, disk.dir], { stdio: 'ignore' }).status
    test.equal(remount('ro'), 0)
    await expectSentence(test, /is on a read-only file system\. Make it writable, or choose/, { prefix, env })
    test.equal(remount('rw,noexec,size=400m'), 0)
    await expectSentence(test, /cannot be executed: the file system may be mounted with noexec/, {
      prefix,
      env,
    })
    test.same(listTree(disk.dir), [])
  },
)

t.test('a directory of another user', { skip: isRoot ? requires('setpriv') : 'needs root' }, async (test) => {
  const shell = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', 'sh']
  await expectSentence(test, /\/opt\S* cannot be written by \S+\. Run the installer as root/, {
    shell,
    prefix: '/opt/boxwood-test/boxwood',
  })
})

t.test('root does not use a directory that another user can change', async (test) => {
  if (!isRoot) return test.pass('root changes the owner', { skip: 'needs root' })
  const dir = createTempDir(test, 'owned')
  chownSync(dir, 65_534, 65_534)
  await expectSentence(test, /owned\S* belongs to another user\. .* remove it with --uninstall/, {
    prefix: dir,
  })
  const below = `${dir}/boxwood`
  await expectSentence(test, /owned\S* belongs to another user, so root cannot install below it for bin/, {
    prefix: below,
    args: ['--user', 'bin'],
  })
  test.notOk(existsSync(below))
})

t.test('arguments', async (test) => {
  for (const [args, sentence] of [
    [['--color'], /Unknown option --color\. Run with --help/],
    [['--url'], /--url needs a value/],
    [['--url', 'box.example'], /box\.example is not an http:\/\/ or https:\/\/ URL/],
    [['--prefix', 'relative'], /relative is not an absolute path/],
    [['--prefix', '/opt/a b'], /has characters other than/],
    [['--service', 'launchd'], /no kind of service launchd\. Pass one of systemd/],
    [['--user', 'stranger'], /no user stranger in \/etc\/passwd|Only root/],
    ...(isRoot
      ? ([[['--user', '_apt'], /home directory \/nonexistent of _apt does not exist|no user _apt/]] as const)
      : []),
    [['--uninstall'], /There is no agent in/],
  ] as const)
    await expectSentence(test, sentence, { args: [...args] })
  const help = await runInstaller(server.url, '/', { args: ['--help'] })
  test.match(help, { status: 0, stdout: /^Usage: / })
})

t.test(
  'shellcheck finds no problem in the rendered script',
  { skip: requires('shellcheck') },
  async (test) => {
    const file = join(createTempDir(test, 'shellcheck'), 'install.sh')
    writeFileSync(file, await downloadScript(server.url))
    const { status, stdout } = spawnSync('shellcheck', ['-S', 'warning', file], { encoding: 'utf8' })
    test.equal(status, 0, stdout)
  },
)
