// What a box with a view of its own cannot see and cannot do.
import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { eachLevel, isRoot, makeDataDir, projectRoot, readWhenThere, startBox } from './support.ts'

/** Prints `name=yes` or `name=no` for each question. */
const questions = (hidden: Record<string, string>) => `
ask() { name=$1; shift; if "$@" >/dev/null 2>&1; then echo "$name=yes"; else echo "$name=no"; fi; }
{
${Object.entries(hidden)
  .map(([name, path]) => `ask ${name} ls -d ${path}`)
  .join('\n')}
ask shadow cat /etc/shadow
ask root-home ls /root
ask sysctl sh -c 'v=$(cat /proc/sys/kernel/printk) && echo "$v" >/proc/sys/kernel/printk'
ask sysctl-as-nested-root unshare -Ur sh -c 'v=$(cat /proc/sys/kernel/printk) && echo "$v" >/proc/sys/kernel/printk'
ask write-usr touch /usr/boxwood-was-here
ask write-runtime touch /run/boxwood/agent/was-here
ask write-root mkdir /was-here
ask mount mount -t tmpfs x /tmp
ask kill-outside kill -0 ${process.pid}
ask write-home touch "$HOME/x"
ask write-tmp touch /tmp/x /var/tmp/x /dev/shm/x
ask own-token cat "$BOXWOOD_STATE/token"
ask node /run/boxwood/bin/node --version
ask dev-null sh -c 'echo x >/dev/null'
echo "uid=$(id -u)"; echo "user=$(id -un)"; echo "hostname=$(cat /proc/sys/kernel/hostname)"; echo "home=$HOME"
echo "processes=$(ls -d /proc/[0-9]* | wc -l)"
grep -E '^(CapEff|CapPrm|NoNewPrivs)' /proc/self/status | tr -d '\\t' | tr : =
} >"$HOME/out"
mv "$HOME/out" "$HOME/answers"`

eachLevel(['bubblewrap', 'namespaces'], async (test, level) => {
  const dataDir = await makeDataDir(test)
  await mkdir(join(dataDir, 'boxes'))
  await writeFile(join(dataDir, 'owner.key'), 'dcp_secret')
  const other = await startBox(test, { level, dataDir })
  const script = questions({
    'owner-key': join(dataDir, 'owner.key'),
    'other-home': other.paths.home,
    'data-folder': dataDir,
    coordinator: join(projectRoot, 'coordinator'),
    'coordinator-in-runtime': '/run/boxwood/coordinator',
  })
  const box = await startBox(test, { level, dataDir, script })
  const lines = (await readWhenThere(box.inHome('answers'))).trim().split('\n')
  const answers = Object.fromEntries(lines.map((line) => line.split('=')))
  const { uid, processes, ...rest } = answers
  test.not(uid, '0', 'box code never runs as uid 0')
  if (!isRoot) test.equal(uid, '1000')
  test.ok(Number(processes) < 10, 'sees its own processes only')
  test.match(rest, {
    'owner-key': 'no',
    'other-home': 'no',
    'data-folder': 'no',
    coordinator: 'no',
    'coordinator-in-runtime': 'no',
    shadow: 'no',
    'root-home': 'no',
    sysctl: 'no',
    'sysctl-as-nested-root': 'no',
    'write-usr': 'no',
    'write-runtime': 'no',
    'write-root': 'no',
    mount: 'no',
    'kill-outside': 'no',
    'write-home': 'yes',
    'write-tmp': 'yes',
    'own-token': 'yes',
    node: 'yes',
    'dev-null': 'yes',
    user: 'box',
    hostname: 'mango',
    home: '/home/box',
    CapEff: '0000000000000000',
    CapPrm: '0000000000000000',
    NoNewPrivs: '1',
  })
  test.match(box.isolation, { level })
})

t.test('a plain process of a root coordinator', { skip: isRoot ? false : 'not root' }, async (test) => {
  const dataDir = await makeDataDir(test)
  await writeFile(join(dataDir, 'owner.key'), 'dcp_secret', { mode: 0o600 })
  const other = await startBox(test, { level: 'process', dataDir })
  const script = `ask() { if "$@" >/dev/null 2>&1; then echo yes; else echo no; fi; }
    { id -u; ask ls ${other.paths.home}; ask cat ${dataDir}/owner.key; ask cat "$BOXWOOD_STATE/token"
    ask kill -0 ${process.pid}; } >"$HOME/out"; mv "$HOME/out" "$HOME/answers"`
  const box = await startBox(test, { level: 'process', dataDir, script })
  const [uid, ...answers] = (await readWhenThere(box.inHome('answers'))).trim().split('\n')
  test.ok(Number(uid) >= 1_900_000_000, 'has a uid of its own')
  test.same(answers, ['no', 'no', 'yes', 'no'], 'other home, owner key, own token, signal to the coordinator')
  test.ok(existsSync(box.inHome('answers')))
})
