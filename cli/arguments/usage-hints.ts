// What to type instead of words of other tools: commands, options and arguments that box does not have.

const STOP = '`box stop NAME` stops a box: it keeps the files and terminates the processes.'
const SUSPEND =
  '`box suspend NAME` keeps the files, and the processes where possible. `box stop NAME` terminates the processes.'
const WAKE = '`box start NAME` starts a suspended box.'
const TERMINAL = '`box ssh NAME` opens a terminal on a box.'
const CREATE = '`box create [NAME]` creates a box.'
const LIST = '`box ls` lists the boxes, `box show NAME` shows one.'
export const IMAGE_OPTION =
  'For an image, use --image: `box run --image debian:12 -- COMMAND`, `box create --image debian:12`. For a box without one: `box run -- COMMAND`.'
const BUILD =
  'Boxwood builds no images. `box template NAME TEMPLATE` makes a template of a box, and `box create --from TEMPLATE` creates boxes from it. For an image that your own tools have built: `box create --image IMAGE`.'
const SNAPSHOT = '`box snapshot NAME` takes a snapshot, `box template NAME TEMPLATE` a template.'
const FORK = '`box fork NAME [NEWNAME]` copies a box.'
const DELETE_SNAPSHOT = '`box snapshots rm SNAPSHOT` deletes a snapshot, `box images rm IMAGE` an image.'
const LISTENING = '`box ports NAME` lists the listening ports of a box.'
const OPEN_PORT =
  '`box share NAME PORT` prints the address of a port of a box for a browser. `box forward NAME PORT` opens any port of a box on this machine.'
const UNSHARE = '`box shares` lists the links to ports, `box unshare NAME PORT` ends one.'
const SERVER = '`box up` starts the coordinator, `box status` shows it.'
const ACCESS =
  '`box login URL` signs in to a coordinator, `box use` selects one, and `box me` shows the user and the key in use.'
const PROMPT =
  '`box prompt NAME "…"` sends a prompt to a coding agent on a box: -p claude, codex, opencode or pi.'
const CONTINUE = 'Use -c, or --conversation with an id of `box conversations NAME`.'
const SECRET =
  '`box secrets set SECRET` stores a key or token, `box mount NAME SECRET` lets a box use it without having the value.'
export const NO_VALUE_ARGUMENT =
  'The value of a secret is never an argument, because other users of the machine and the history of your shell would see it. Type it at the prompt, or pipe it: `box secrets set SECRET <file`.'
const TIER = '--tier sets the CPUs, the memory and the disk of a box.'

const forWords = (words: string, hint: string) => words.split(' ').map((word) => [word, hint] as const)

const COMMAND_HINTS = new Map([
  ...forWords('auth signin config context contexts profile profiles switch token', ACCESS),
  ...forWords('console connect enter terminal sh bash', TERMINAL),
  ...forWords('sleep hibernate freeze', SUSPEND),
  ...forWords('halt shutdown poweroff', STOP),
  ...forWords('resume unpause unsuspend boot', WAKE),
  ...forWords('new add launch provision', CREATE),
  ...forWords('get boxes', LIST),
  ...forWords(
    'stats usage monitor vitals graph free df uptime vmstat iostat',
    '`box metrics NAME` shows the usage of a box over time, `box top NAME` its processes, `box show NAME` its current usage.',
  ),
  ...forWords('procs-at psat', '`box ps-at NAME 03:14` lists the processes of a past moment.'),
  ...forWords('htop processes procs pstree', '`box top NAME` shows the processes of a box.'),
  ...forWords('port listening listeners netstat ss lsof', LISTENING),
  ...forWords('tail follow', '`box logs -f NAME` follows the output of a detached process.'),
  ...forWords(
    'pull',
    '`box images pull IMAGE` downloads an image. `box cp` copies files: `box cp NAME:FILE .`',
  ),
  ...forWords(
    'push upload download rsync sync',
    '`box cp` copies files: `box cp FILE NAME:` and `box cp NAME:FILE .`',
  ),
  ...forWords('build', BUILD),
  ...forWords('commit checkpoint save export', SNAPSHOT),
  ...forWords('rmi rm-snapshot delete-snapshot', DELETE_SNAPSHOT),
  ...forWords('clone duplicate branch', FORK),
  ...forWords('rollback revert import', '`box restore SNAPSHOT [NEWNAME]` creates a box from a snapshot.'),
  ...forWords(
    'mv',
    '`box rename NAME NEWNAME` renames a box, `box files mv NAME SOURCE DESTINATION` a file.',
  ),
  ...forWords(
    'mkdir stat dir',
    '`box files` lists, moves and removes files of a box, and creates directories.',
  ),
  ...forWords('scale', '`box resize NAME TIER` changes the tier of a box.'),
  ...forWords('migrate relocate', '`box move NAME REGION` moves a box to another region.'),
  ...forWords(
    'update',
    '`box upgrade` restarts the coordinator with the version that is installed; `box docs upgrade` describes the steps. `box set NAME` changes the settings of a box.',
  ),
  ...forWords(
    'schedule edit autostop auto-pause ttl',
    '`box set NAME` sets when a box is suspended and when snapshots are taken.',
  ),
  ...forWords('delete-after expire', '`box set NAME --delete-after 2h` deletes a box after a time.'),
  ...forWords('port-forward portforward fwd proxy tunnel expose publish preview url link', OPEN_PORT),
  ...forWords('urls links unexpose unpublish', UNSHARE),
  ...forWords('server serve daemon coordinator', SERVER),
  ...forWords('alias aliases', 'Boxwood has no aliases. Use those of your shell: `alias f="box exec fig"`.'),
  ...forWords(
    'diff compare',
    'Boxwood cannot compare boxes. In bash: diff <(box exec NAME cat FILE) <(box exec OTHER cat FILE)',
  ),
  ...forWords(
    'code vscode cursor ide editor',
    'Editors connect with OpenSSH: run `box ssh-config >~/.ssh/boxwood.config`, add `Include boxwood.config` at the top of ~/.ssh/config, and open the host box-NAME.',
  ),
  ...forWords(
    'vnc rdp browser novnc gui x11 screen kiosk',
    '`box desktop start NAME` starts the desktop of a box, `box desktop start NAME --mode browser` Chromium, and `box desktop open NAME` shows it in a browser.',
  ),
  ...forWords(
    'restore-backup',
    '`boxwood restore FILE` restores a backup of the coordinator, which `box backup FILE` has written, into an empty data directory.',
  ),
  ...forWords('invite', '`box members invite EMAIL --role ROLE` invites a person.'),
  ...forWords('role roles', '`box members set EMAIL --role ROLE` changes the role of a member.'),
  ...forWords(
    'grant ungrant',
    '`box secrets grant SECRET NAME` lets a box use a secret. `box members set EMAIL --role ROLE` changes the role of a member.',
  ),
  ...forWords(
    'revoke rotate',
    '`box keys rm KEY` revokes an API key, `box keys rotate KEY` replaces its secret. `box secrets rotate SECRET` replaces the value of a secret.',
  ),
  ...forWords('quota quotas limits quiet-hours', '`box policies` shows the policies of the workspace.'),
  ...forWords('org orgs organization project projects', '`box workspace ls` lists your workspaces.'),
  ...forWords('apply deploy', '`box create` creates a box, `box cp` copies files, `box exec` runs commands.'),
  ...forWords('vault credential credentials', SECRET),
  ...forWords(
    'vars variables setenv',
    '`box env NAME A=1` sets environment variables of a box, `box environments set ENVIRONMENT A=1` those of new boxes. Keys and tokens belong in secrets: `box secrets set SECRET`.',
  ),
  ...forWords('repo', '`box repos NAME` lists the git repositories of a box.'),
  ...forWords('claude codex opencode pi chat ask agent agents ai task tasks', PROMPT),
  ...forWords(
    'session thread threads',
    '`box conversations NAME` lists the conversations with coding agents, `box sessions NAME` the terminal sessions.',
  ),
  ...forWords(
    'abort cancel',
    '`box interrupt NAME` interrupts the runs of coding agents, `box kill NAME ID` terminates a process.',
  ),
  ...forWords('queue', '`box prompts NAME --filter status=queued` lists the queued prompts.'),
])

const READ_SECRET =
  'No command shows the value of a secret. `box secrets show SECRET` shows its hosts and grants, `box secrets rotate SECRET` replaces the value.'
const READ_FILE =
  '`box exec NAME cat FILE` prints a file, `box cp NAME:FILE .` copies it to this machine, and `box cp NAME:FILE -` to stdout.'
const COPY_FILE = '`box cp` copies files: `box cp FILE NAME:` and `box cp NAME:FILE .`'
const EDIT_FILE =
  '`box ssh NAME` opens a terminal for an editor. `box cp FILE NAME:` copies a file to the box.'
const AWS_LOGIN =
  'Boxes need no login and no key for AWS: `box aws connect` connects a role, which they assume with a token of their own.'
const INVITE = '`box members invite EMAIL --role ROLE` invites a person.'
const ROLE = '`box members set EMAIL --role ROLE` changes the role of a member.'
const AGENT_BUILDS =
  'Agents get the build of the coordinator by themselves, after `box upgrade`. `box agents rollout` sets which boxes get it.'
const TAKE_SNAPSHOT = '`box snapshot NAME` takes a snapshot of a box.'
const MAKE_TEMPLATE = '`box template NAME TEMPLATE` makes a template of a box.'
const OPEN_DESKTOP = '`box desktop open NAME` shows the desktop in a browser.'

const forSubcommands = (command: string, words: string, hint: string) =>
  words.split(' ').map((word) => [`${command} ${word}`, hint] as const)

/** The words after a command that has subcommands. */
const SUBCOMMAND_HINTS = new Map([
  ...forSubcommands(
    'secrets',
    'get reveal read cat view value values print export decrypt dump download pull',
    READ_SECRET,
  ),
  ...forSubcommands('secrets', 'put write update edit new change', SECRET),
  ...forSubcommands('secrets', 'mount attach use', '`box mount NAME SECRET` lets a box use a secret.'),
  ...forSubcommands('secrets', 'unmount detach', '`box unmount NAME SECRET` takes a secret from a box.'),
  ...forSubcommands('secrets', 'revoke', '`box secrets ungrant SECRET NAME` removes the grant of a box.'),
  ...forSubcommands('files', 'cat read view less more head tail', READ_FILE),
  ...forSubcommands('files', 'cp copy push pull get put upload download sync rsync', COPY_FILE),
  ...forSubcommands('files', 'edit nano vi vim write touch create', EDIT_FILE),
  ...forSubcommands(
    'files',
    'chmod chown ln find grep du df tree tar',
    '`box exec NAME COMMAND` runs any command on a box.',
  ),
  ...forSubcommands('aws', 'login logout auth sso configure keys', AWS_LOGIN),
  ...forSubcommands(
    'aws',
    's3 ec2 sts iam lambda ecr',
    '`box exec NAME -- aws s3 ls` runs the command aws on a box.',
  ),
  ...forSubcommands('desktop', 'restart', '`box desktop stop NAME`, then `box desktop start NAME`.'),
  ...forSubcommands('desktop', 'show view url connect', OPEN_DESKTOP),
  ...forSubcommands(
    'repos',
    'add create clone rm remove delete',
    '`box environments repo` adds and removes the repositories of an environment. `box exec NAME git clone URL` clones one on a box.',
  ),
  ...forSubcommands('repos', 'pull fetch sync', '`box repos update NAME` updates the repositories of a box.'),
  ...forSubcommands('members', 'new', INVITE),
  ...forSubcommands('members', 'role update edit promote demote', ROLE),
  ...forSubcommands(
    'keys',
    'show get reveal',
    'A key is shown once, when it is created. `box keys rotate KEY` replaces it.',
  ),
  ...forSubcommands('agents', 'upgrade update restart', AGENT_BUILDS),
  ...forSubcommands('images', 'build tag push', BUILD),
  ...forSubcommands('snapshots', 'create add new take', TAKE_SNAPSHOT),
  ...forSubcommands('templates', 'create add new', MAKE_TEMPLATE),
  ...forSubcommands(
    'policies',
    'rm remove delete unset reset',
    '`box policies set POLICY off` removes a policy, `box policies set POLICY default` restores its default.',
  ),
  ...forSubcommands('policies', 'get show', '`box policies` shows the policies of the workspace.'),
  ...forSubcommands(
    'workspace',
    'switch select',
    '`box workspace use WORKSPACE` switches to another workspace.',
  ),
  ...forSubcommands('workspace', 'rm remove delete', '`box workspace close WORKSPACE` closes the workspace.'),
  ...forSubcommands(
    'machine',
    'create enroll join register',
    '`box machine add` prints the line that enrolls a machine.',
  ),
  ...forSubcommands(
    'environments',
    'edit change env var vars',
    '`box environments set ENVIRONMENT A=1` sets variables of an environment.',
  ),
  ...forSubcommands(
    'audit',
    'export stream',
    '`box audit --json` prints the events, `box audit sink set URL` delivers them to an HTTPS endpoint.',
  ),
])

/** The keys are `command option`, the option alone, or the command alone. */
const OPTION_HINTS = new Map([
  ...forWords(
    '--image',
    'Use --image with `box create`, `box run` and `box environments`. A copy of a box has the same image.',
  ),
  ...forWords('--template --snapshot --from-template --from-snapshot', 'Use --from.'),
  ...forWords('--cpu --cpus --memory --mem --disk --size --vm-size', TIER),
  ...forWords('-p --port --ports --publish -L', OPEN_PORT),
  ...['running', 'suspended'].map((state) => [`ls --${state}`, `Use --filter state=${state}.`] as const),
  // A stopped box has this state.
  ['ls --stopped', 'Use --filter state=suspended.'],
  ['metrics --since', 'Use --last 24h or --from.'],
  ['metrics --until', 'Use --to.'],
  ['prompts -p', 'Use --filter provider=PROVIDER.'],
  ['prompts --provider', 'Use --filter provider=PROVIDER.'],
  ...forWords('--resume --session --session-id --thread', CONTINUE),
  ...forWords(
    '--dangerously-skip-permissions --dangerously-bypass-approvals-and-sandbox --yolo --full-auto',
    'Use --auto.',
  ),
  ['prompt --output-format', 'Use --json.'],
  ['prompt --background', 'Use -d.'],
  ['prompt --reasoning-effort', 'Use --effort.'],
  ['prompt', 'Write `--` before a prompt that starts with a hyphen. For options, see `box prompt --help`.'],
  ['ps -a', '`box top NAME` shows all processes of a box.'],
  ['exec -u', 'Commands run as the user of the box.'],
  ['exec --user', 'Commands run as the user of the box.'],
  ['ssh -p', 'box ssh needs no port. For OpenSSH, see `box ssh-config --help`.'],
  ['create -t', 'Use --tier.'],
  ['resize --tier', 'Use `box resize NAME TIER`.'],
  ['move --region', 'Use `box move NAME REGION`.'],
  ['env -e', 'Use `box env NAME A=1`.'],
  ...['set', 'rotate'].flatMap((command) =>
    ['--value', '-v', '--body', '--from-literal'].map(
      (option) => [`secrets ${command} ${option}`, NO_VALUE_ARGUMENT] as const,
    ),
  ),
  ...forWords('--secret --secrets', '`box mount NAME SECRET` lets a box use a secret.'),
  ...forWords('--env-file', 'Use `box env NAME --file FILE`, or --environment with an environment.'),
  ['env --set', 'Use `box env NAME A=1`.'],
  ['wait --condition', 'Use --for.'],
  ['wait --state', 'Use --for.'],
  ['snapshot --template', '`box template NAME TEMPLATE` makes a template of a box.'],
  ['snapshot -m', 'Use --description.'],
  ['create -n', 'Use `box create NAME`.'],
  ...forWords(
    '-H --host --url --api-key --key --token',
    'Select a coordinator with --profile, or set BOXWOOD_URL and BOXWOOD_API_KEY in the environment.',
  ),
  ...forWords('--debug', 'Use --verbose.'),
  ...forWords('--format', 'Use --json, or -o on commands that list something.'),
] as const)

/** The hints for missing or excess arguments, by the command. */
const ARGUMENT_HINTS = new Map([
  ['secrets set', NO_VALUE_ARGUMENT],
  ['secrets rotate', NO_VALUE_ARGUMENT],
  ['secrets', SECRET],
  ['logs', 'Type `box logs NAME`. `box ls` lists the boxes.'],
  ['profile', '`box profile --email ADDRESS` and `box profile --name NAME` change your profile.'],
  ['environments', '`box environments show ENVIRONMENT` shows an environment.'],
  ['snapshots', TAKE_SNAPSHOT],
  ['templates', MAKE_TEMPLATE],
  [
    'billing',
    '`box billing` shows the balance, and where to pay. The operator adds credit on the machine of the coordinator: `boxwood credit WORKSPACE 25.00`.',
  ],
  ['team', `${INVITE} \`box members rm EMAIL\` removes a member.`],
  [
    'regions',
    'The operator selects the regions and their providers with BOXWOOD_REGIONS: see `box docs engines`.',
  ],
  [
    'upgrade',
    'box upgrade restarts the coordinator with the version that is installed. Install another one first: see `box docs upgrade`.',
  ],
  ['ls', LIST],
  ['usage', '`box usage --filter name=NAME` shows what one box has cost.'],
  ['status', 'box status shows the coordinator. To show a box: `box show NAME`.'],
  ['doctor', 'box doctor checks this machine and the coordinator. To show a box: `box show NAME`.'],
  ['me', '`box members` lists the members of the workspace.'],
  ['exec', 'For a command: `box exec NAME COMMAND`. For a terminal: `box ssh NAME`.'],
  ['up', 'box up starts the coordinator. To start a box: `box start NAME`.'],
  ['down', 'box down stops the coordinator. To stop a box: `box stop NAME`.'],
  ['kill', 'box kill terminates a process of a box: `box kill NAME ID`. To stop a box: `box stop NAME`.'],
])

/** What lists the values of an argument, by its name. */
const VALUE_LISTS = new Map([
  ['secret', '`box secrets` lists the secrets.'],
  ['grantee', '`box ls` lists the boxes, `box members` the members.'],
  ['variable', '`box mounts NAME` lists the variables of the secrets on a box.'],
  ['environment', '`box environments` lists the environments.'],
  ['snapshot', '`box snapshots` lists the snapshots, `box templates` the templates.'],
  ['template', '`box templates` lists the templates.'],
  ['key', '`box keys` lists the keys.'],
  ['member', '`box members` lists the members.'],
  ['role', '`box aws roles` lists the roles.'],
  ['policy', '`box policies` lists the policies.'],
  ['token', '`box machine ls` lists the tokens.'],
  ['workspace', '`box workspace ls` lists the workspaces.'],
  ['ports', '`box ports NAME` lists the ports on which a box listens.'],
])

export const findCommandHint = (word: string): string | undefined => COMMAND_HINTS.get(word.toLowerCase())
/** @param command such as `files` */
export const findSubcommandHint = (command: string, word: string): string | undefined =>
  SUBCOMMAND_HINTS.get(`${command} ${word.toLowerCase()}`)
export const findValueList = (argument: string): string | undefined => VALUE_LISTS.get(argument)
/** @param words the arguments from the command on @param filter such as `user=ada`, where the option is a key of --filter */
export const findOptionHint = (
  command: string,
  option: string,
  words: readonly string[],
  filter: string | undefined,
): string | undefined =>
  OPTION_HINTS.get(`${command} ${option}`) ??
  (filter === undefined ? OPTION_HINTS.get(option) : `Use --filter ${filter}.`) ??
  (command === 'run' && !words.includes('--')
    ? 'Write `--` before the command: `box run -- uname -s`. For options of box run, see `box run --help`.'
    : OPTION_HINTS.get(command))
export const findArgumentHint = (command: string): string | undefined => ARGUMENT_HINTS.get(command)
