// Isolation of local boxes: a box can access its own files, and no other files, processes or privileges.
import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { testEachLevel } from './each-level.ts'
import { createDataDir, isRoot, projectRoot, startBox, waitForFileText } from './support.ts'

/** Returns a script that runs each check and writes `name=yes` or `name=no` to the file `results` in its home. */
const buildChecksScript = (hiddenPaths: Record<string, string>) => `
check() { name=$1; shift; if "$@" >/dev/null 2>&1; then echo "$name=yes"; else echo "$name=no"; fi; }
{
${Object.entries(hiddenPaths)
  .map(([name, path]) => `check ${name} ls -d ${path}`)
  .join('\n')}
check shadow cat /etc/shadow
check root-home ls /root
check sysctl sh -c 'v=$(cat /proc/sys/kernel/printk) && echo "$v" >/proc/sys/kernel/printk'
check sysctl-as-nested-root unshare -Ur sh -c 'v=$(cat /proc/sys/kernel/printk) && echo "$v" >/proc/sys/kernel/printk'
check write-usr touch /usr/boxwood-test
check write-runtime touch /run/boxwood/agent/boxwood-test
check write-root mkdir /boxwood-test
check mount mount -t tmpfs x /tmp
check kill-outside kill -0 ${process.pid}
check write-home touch "$HOME/x"
check write-tmp touch /tmp/x /var/tmp/x /dev/shm/x
check own-token cat "$BOXWOOD_STATE/token"
check node /run/boxwood/bin/node --version
check dev-null sh -c 'echo x >/dev/null'
echo "uid=$(id -u)"; echo "user=$(id -un)"; echo "hostname=$(cat /proc/sys/kernel/hostname)"; echo "home=$HOME"
echo "processes=$(ls -d /proc/[0-9]* | wc -l)"
grep -E '^(CapEff|CapPrm|NoNewPrivs)' /proc/self/status | tr -d '\\t' | tr : =
} >"$HOME/out"
mv "$HOME/out" "$HOME/results"`

testEachLevel(
  'hides the host and other boxes from a namespaced box',
  async (test, level) => {
    const dataDir = await createDataDir(test)
    await mkdir(join(dataDir, 'boxes'))
    await writeFile(join(dataDir, 'owner.key'), 'dcp_secret')
    const otherBox = await startBox(test, { level, dataDir })
    const script = buildChecksScript({
      'owner-key': join(dataDir, 'owner.key'),
      'other-home': otherBox.paths.home,
      'data-dir': dataDir,
      coordinator: join(projectRoot, 'coordinator'),
      'coordinator-in-runtime': '/run/boxwood/coordinator',
    })
    const box = await startBox(test, { level, dataDir, script })
    const lines = (await waitForFileText(box.inHome('results'))).trim().split('\n')
    const { uid, processes, ...results } = Object.fromEntries(lines.map((line) => line.split('=')))
    test.not(uid, '0', 'the box does not run as uid 0')
    if (!isRoot) test.equal(uid, '1000')
    test.ok(Number(processes) < 10, 'the box sees only its own processes')
    test.match(results, {
      'owner-key': 'no',
      'other-home': 'no',
      'data-dir': 'no',
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
  },
  ['bubblewrap', 'namespaces'],
)

t.test(
  'separates boxes at level process by uid when the coordinator runs as root',
  { skip: isRoot ? false : 'needs root' },
  async (test) => {
    const dataDir = await createDataDir(test)
    await writeFile(join(dataDir, 'owner.key'), 'dcp_secret', { mode: 0o600 })
    const otherBox = await startBox(test, { level: 'process', dataDir })
    const script = `check() { if "$@" >/dev/null 2>&1; then echo yes; else echo no; fi; }
    { id -u; check ls ${otherBox.paths.home}; check cat ${dataDir}/owner.key; check cat "$BOXWOOD_STATE/token"
    check kill -0 ${process.pid}
    check touch ${otherBox.paths.tmp}/x; check touch ${otherBox.paths.varTmp}/x; check ls ${join(dataDir, 'boxes')}
    check touch "$TMPDIR/x"; } >"$HOME/out"; mv "$HOME/out" "$HOME/results"`
    const box = await startBox(test, { level: 'process', dataDir, script })
    const [uid, ...results] = (await waitForFileText(box.inHome('results'))).trim().split('\n')
    test.ok(Number(uid) >= 1_900_000_000, 'the box has its own uid')
    test.same(
      results,
      ['no', 'no', 'yes', 'no', 'no', 'no', 'no', 'yes'],
      "other box's home, owner key, own token, signal to the coordinator, other box's temporary directories, list of boxes, own temporary directory",
    )
    test.ok(existsSync(box.inHome('results')))
  },
)
