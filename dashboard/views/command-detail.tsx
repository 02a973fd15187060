// One command with its output, which is followed while the command runs.

import { useSignal } from '@preact/signals'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import type { OutputStream } from '../../client/boxes/output.ts'
import { wait } from '../../client/http/calls.ts'
import type { Box } from '../../shared/api/boxes.ts'
import type { Command as CommandRecord } from '../../shared/api/commands.ts'
import { getBoxClient } from '../data/box-clients.ts'
import { canRunAgain, formatDuration, formatStarter } from '../data/command-list.ts'
import { CommandOutputLoader } from '../data/command-output.ts'
import { boxes, getClient, losses, now } from '../data/live.ts'
import { formatBoxPath, getBoxKey } from '../data/routes.ts'
import { formatBytes } from '../data/sizes.ts'
import { startCommand } from '../data/start-command.ts'
import { acquireStream } from '../data/stream-slots.ts'
import { isVisible } from '../data/visibility.ts'
import { showHidden, showHiddenInOutput } from '../data/visible-text.ts'
import { Icon } from '../design/icon.tsx'
import { IconButton } from '../design/icon-button.tsx'
import { ChevronLeftIcon, DownloadIcon, RepeatIcon, StopIcon } from '../design/icons.ts'
import { SegmentedControl } from '../design/segmented-control.tsx'
import { Skeleton } from '../design/skeleton.tsx'
import { Age } from './age.tsx'
import { Commands } from './command.tsx'
import { downloadStoredOutput } from './download-output.ts'
import { OutputView } from './output-view.tsx'
import { Problem } from './problem.tsx'
import { Result } from './result.tsx'
import { useAction } from './use-action.ts'
import { useViewer } from './use-member-names.ts'

export function CommandDetail({ box, commandId }: { box: Box; commandId: string }) {
  const version = useSignal(0)
  const isWatched = useSignal(true)
  const frame = useRef(0)
  const loader = useMemo(
    () =>
      new CommandOutputLoader({
        client: getClient(),
        boxClient: getBoxClient(box.id),
        boxId: box.id,
        commandId,
        isBoxRunning: () => boxes.value?.get(box.id)?.observedState === 'running',
        // Output that arrives faster than the display is painted once per frame.
        onChange() {
          cancelAnimationFrame(frame.current)
          frame.current = requestAnimationFrame(() => {
            version.value += 1
          })
        },
        acquireStream,
        wait,
      }),
    [],
  )
  const visible = isVisible.value
  useEffect(() => {
    if (!visible) return
    const controller = new AbortController()
    isWatched.value = true
    void loader.run(controller.signal).then(() => {
      if (!controller.signal.aborted) isWatched.value = false
    })
    return () => controller.abort()
  }, [visible, losses.value])
  void version.value
  const { command } = loader
  return (
    <>
      <p class="back">
        <a href={formatBoxPath(getBoxKey(box), 'commands')}>
          <Icon of={ChevronLeftIcon} /> All commands
        </a>
      </p>
      <Problem error={loader.error} />
      {loader.error !== null && isWatched.value && <p>The page tries again by itself.</p>}
      {command === null ? (
        loader.error === null && <Skeleton label="Loading the command." rows={6} />
      ) : (
        <>
          <Facts command={command} />
          <Actions box={box} command={command} canStop={loader.canStop} />
          <Output box={box} command={command} loader={loader} version={version.value} />
        </>
      )}
    </>
  )
}

function Facts({ command }: { command: CommandRecord }) {
  const { startedAt, cwd, mode, pid } = command
  const viewer = useViewer()
  return (
    <>
      <h2 class="visually-hidden">Command</h2>
      <pre class="text">
        {command.command === null ? 'not recorded' : showHiddenInOutput(command.command)}
        {command.commandTruncated && '… (the rest is not stored)'}
      </pre>
      <p class="facts">
        <span role="status">
          <Result command={command} />
        </span>
        <span>{formatDuration(command, now.value)}</span>
        <span>
          started <Age at={startedAt} /> by {showHidden(formatStarter(command, viewer))}
        </span>
        {cwd !== null && (
          <span>
            in <code>{showHidden(cwd)}</code>
          </span>
        )}
        {mode === 'detached' && <span>in the background</span>}
        {pid !== null && <span>process {pid}</span>}
      </p>
    </>
  )
}

function Actions({ box, command, canStop }: { box: Box; command: CommandRecord; canStop: boolean }) {
  const { isBusy, error, run } = useAction()
  const message = useSignal('')
  const start = (act: () => Promise<unknown>, text: string) => () =>
    run(() => {
      message.value = text
      return act()
    })
  const { hostname } = box
  const stop = () => getBoxClient(box.id).send('DELETE', `exec/${command.id}`)
  const again = () =>
    startCommand(box, {
      command: command.command ?? '',
      ...(command.cwd !== null && command.cwd !== '~' && { cwd: command.cwd }),
    })
  return (
    <>
      <p class="tools">
        {canRunAgain(command) && box.desiredState !== 'terminated' && (
          <button type="button" onClick={start(again, 'The command is being started.')}>
            <Icon of={RepeatIcon} />
            Run again
          </button>
        )}
        {canStop && (
          <button type="button" class="danger" onClick={start(stop, 'The command is being stopped.')}>
            <Icon of={StopIcon} />
            Stop
          </button>
        )}
        <Commands
          texts={
            canStop
              ? [`box kill ${hostname} ${command.id}`, `box logs -f ${hostname} ${command.id}`]
              : [`box output ${getBoxKey(box)} ${command.id}`]
          }
        />
        <span role="status">{isBusy.value && message.value}</span>
      </p>
      <Problem error={error.value} />
    </>
  )
}

type OutputProps = { box: Box; command: CommandRecord; loader: CommandOutputLoader; version: number }

function Output({ box, command, loader, version }: OutputProps) {
  const chosen = useSignal<OutputStream | null>(null)
  const { error, run } = useAction()
  const { position, streams, skipped } = loader
  const stream = chosen.value ?? (position.stdout === 0 && position.stderr > 0 ? 'stderr' : 'stdout')
  const download = () => void run(() => downloadStoredOutput(box, command, stream))
  if (!command.outputKept) return <p>The output is not stored: the workspace retains no data.</p>
  return (
    <section class="output-panel" aria-labelledby="output">
      <div class="output-head">
        <h2 id="output">Output</h2>
        <SegmentedControl
          label="Stream"
          options={(['stdout', 'stderr'] as const).map((name) => ({
            value: name,
            label: name,
            count: formatBytes(position[name]),
          }))}
          value={stream}
          onChange={(name) => {
            chosen.value = name
          }}
        />
        <IconButton icon={DownloadIcon} label={`Download ${stream}`} onClick={download} />
      </div>
      <Problem error={error.value} />
      {skipped[stream] > 0 && <p>The first {formatBytes(skipped[stream])} are not stored any more.</p>}
      {streams[stream].hasDropped && <p>The page shows the end of the output only.</p>}
      <OutputView
        key={stream}
        label={stream}
        output={streams[stream]}
        version={version}
        isRunning={command.status === 'running'}
      />
    </section>
  )
}
