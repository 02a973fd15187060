// What to type instead of words of other tools: commands, options and arguments that box does not have.

const SUSPEND = '`box stop NAME` stops a box: it keeps the files and terminates the processes.'
const WAKE = '`box start NAME` starts a suspended box.'
const TERMINAL = '`box ssh NAME` opens a terminal on a box.'
const CREATE = '`box create [NAME]` creates a box.'
const LIST = '`box ls` lists the boxes, `box show NAME` shows one.'
const NO_IMAGES = 'Boxwood has no images, templates or snapshots yet. `box create` creates an empty box.'
const NO_PORTS = 'Boxwood cannot forward ports yet.'
const SERVER = '`box up` starts the coordinator, `box status` shows it.'
const ACCESS =
  'box needs no login: set BOXWOOD_URL and BOXWOOD_API_KEY. `box me` shows the key in use. To open a terminal on a box: `box ssh NAME`.'
const TIER = '--tier sets the CPUs, the memory and the disk of a box.'

const forWords = (words: string, hint: string) => words.split(' ').map((word) => [word, hint] as const)

const COMMAND_HINTS = new Map([
  ...forWords('login logout auth config context contexts profile profiles keys token', ACCESS),
  ...forWords('console connect enter terminal sh bash', TERMINAL),
  ...forWords('pause sleep hibernate halt shutdown poweroff', SUSPEND),
  ...forWords('resume unpause unsuspend boot', WAKE),
  ...forWords('new add launch provision', CREATE),
  ...forWords('get boxes', LIST),
  ...forWords('top stats usage', '`box show NAME` shows the CPU, memory and disk usage of a box.'),
  ...forWords('tail follow', '`box logs -f NAME` follows the output of a detached process.'),
  ...forWords(
    'push pull upload download rsync sync',
    '`box cp` copies files: `box cp FILE NAME:` and `box cp NAME:FILE .`',
  ),
  ...forWords('image images build template templates snapshot snapshots commit', NO_IMAGES),
  ...forWords(
    'fork clone rename mv resize move migrate',
    'Boxwood cannot do this yet. `box create` creates a new box.',
  ),
  ...forWords('port ports forward port-forward proxy tunnel share expose', NO_PORTS),
  ...forWords('server serve daemon coordinator', SERVER),
  ...forWords(
    'events audit',
    '`box history NAME` lists the commands of a box, `box show NAME` its state changes.',
  ),
  ...forWords('apply deploy', '`box create` creates a box, `box cp` copies files, `box exec` runs commands.'),
  ...forWords('env secret secrets', '`box create -e NAME=VALUE` sets environment variables of a new box.'),
])

/** By `command option`, by the option alone, or by the command alone. */
const OPTION_HINTS = new Map([
  ...forWords('--image --template --snapshot --from', NO_IMAGES),
  ...forWords('--cpu --cpus --memory --mem --disk --size --vm-size', TIER),
  ...forWords('-p --port --ports --publish', NO_PORTS),
  [
    'run',
    'Write `--` before the command: `box run -- uname -s`. For options of box run, see `box run --help`.',
  ],
  ['exec -u', 'Commands run as the user of the box.'],
  ['exec --user', 'Commands run as the user of the box.'],
  ['ssh -p', 'box ssh needs no port. For OpenSSH, see `box ssh-config --help`.'],
  ['ssh -L', NO_PORTS],
  ['create -t', 'Use --tier.'],
  ['create -n', 'Use `box create NAME`.'],
  ...forWords(
    '-H --host --url --api-key --key --token',
    'Set BOXWOOD_URL and BOXWOOD_API_KEY in the environment.',
  ),
  ...forWords('--debug', 'Use --verbose.'),
  ...forWords('--format', 'Use --json, or -o on commands that list something.'),
] as const)

/** By the command; for missing or excess arguments. */
const ARGUMENT_HINTS = new Map([
  ['up', 'box up starts the coordinator. To start a box: `box start NAME`.'],
  ['down', 'box down stops the coordinator. To stop a box: `box stop NAME`.'],
  ['kill', 'box kill terminates a process of a box: `box kill NAME ID`. To stop a box: `box stop NAME`.'],
])

export const findCommandHint = (word: string): string | undefined => COMMAND_HINTS.get(word.toLowerCase())
export const findOptionHint = (command: string, option: string): string | undefined =>
  OPTION_HINTS.get(`${command} ${option}`) ?? OPTION_HINTS.get(option) ?? OPTION_HINTS.get(command)
export const findArgumentHint = (command: string): string | undefined => ARGUMENT_HINTS.get(command)
