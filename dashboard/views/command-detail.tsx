// One command with its output, which is followed while the command runs.

import { useSignal } from '@preact/signals'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import type { OutputStream } from '../../client/boxes/output.ts'
import { wait } from '../../client/http/calls.ts'
import type { BoxwoodError } from '../../client/http/errors.ts'
import type { Box } from '../../shared/api/boxes.ts'
import type { Command as CommandRecord } from '../../shared/api/commands.ts'
import { toBoxwoodError } from '../api/errors.ts'
import { formatAge } from '../data/age.ts'
import { getBoxClient } from '../data/box-clients.ts'
import { canRunAgain, formatActor, formatDuration, formatResult } from '../data/command-list.ts'
import { CommandOutputLoader } from '../data/command-output.ts'
import { boxes, getClient, losses, now, session } from '../data/live.ts'
import { formatBoxPath, getBoxKey } from '../data/routes.ts'
import { formatBytes } from '../data/sizes.ts'
import { startCommand } from '../data/start-command.ts'
import { acquireStream } from '../data/stream-slots.ts'
import { isVisible } from '../data/visibility.ts'
import { showHidden, showHiddenInOutput } from '../data/visible-text.ts'
import { Command } from './command.tsx'
import { downloadStoredOutput } from './download-output.ts'
import { OutputView } from './output-view.tsx'
import { Problem } from './problem.tsx'

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
      <p class="tools">
        <a href={formatBoxPath(getBoxKey(box), 'commands')}>All commands</a>
      </p>
      <Problem error={loader.error} />
      {loader.error !== null && isWatched.value && <p>The page tries again by itself.</p>}
      {command === null ? (
        loader.error === null && <p>Loading the command.</p>
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
  return (
    <>
      <h2>Command</h2>
      <pre class="text">
        {command.command === null ? 'not recorded' : showHiddenInOutput(command.command)}
        {command.commandTruncated && '… (the rest is not stored)'}
      </pre>
      <p class="facts">
        <span
          role="status"
          class={`result ${command.exitCode === 0 || command.status === 'running' ? 'exited' : ''}`}
        >
          {showHidden(formatResult(command))}
        </span>
        <span>{formatDuration(command, now.value)}</span>
        <span>
          started <time dateTime={startedAt}>{formatAge(now.value - Date.parse(startedAt))} ago</time> by{' '}
          {formatActor(command, session.value)}
        </span>
        {cwd !== null && <span>in {showHidden(cwd)}</span>}
        <span>
          {mode}
          {pid !== null && <>, pid {pid}</>}
        </span>
      </p>
    </>
  )
}

function Actions({ box, command, canStop }: { box: Box; command: CommandRecord; canStop: boolean }) {
  const error = useSignal<BoxwoodError | null>(null)
  const message = useSignal('')
  const isBusy = useSignal(false)
  const run = (action: () => Promise<unknown>, text: string) => async () => {
    if (isBusy.value) return
    isBusy.value = true
    error.value = null
    message.value = text
    try {
      await action()
    } catch (reason) {
      error.value = toBoxwoodError(reason)
    } finally {
      message.value = ''
      isBusy.value = false
    }
  }
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
          <button type="button" onClick={run(again, 'The command is being started.')}>
            Run again
          </button>
        )}
        {canStop && (
          <button type="button" onClick={run(stop, 'The command is being stopped.')}>
            Stop
          </button>
        )}
        {canStop ? (
          <>
            <Command text={`box kill ${hostname} ${command.id}`} />
            <Command text={`box logs -f ${hostname} ${command.id}`} />
          </>
        ) : (
          <Command text={`box output ${getBoxKey(box)} ${command.id}`} />
        )}
        <span role="status">{message}</span>
      </p>
      <Problem error={error.value} />
    </>
  )
}

type OutputProps = { box: Box; command: CommandRecord; loader: CommandOutputLoader; version: number }

function Output({ box, command, loader, version }: OutputProps) {
  const chosen = useSignal<OutputStream | null>(null)
  const error = useSignal<BoxwoodError | null>(null)
  const { position, streams, skipped } = loader
  const stream = chosen.value ?? (position.stdout === 0 && position.stderr > 0 ? 'stderr' : 'stdout')
  const download = () => {
    error.value = null
    downloadStoredOutput(box, command, stream).catch((reason) => {
      error.value = toBoxwoodError(reason)
    })
  }
  if (!command.outputKept) return <p>The output is not stored: the workspace retains no data.</p>
  return (
    <>
      <h2>Output</h2>
      <fieldset class="tools">
        <legend class="visually-hidden">Stream</legend>
        {(['stdout', 'stderr'] as const).map((name) => (
          <label key={name}>
            <input
              type="radio"
              name="stream"
              checked={stream === name}
              onChange={() => {
                chosen.value = name
              }}
            />{' '}
            {name} ({formatBytes(position[name])})
          </label>
        ))}
        <button type="button" onClick={download}>
          Download {stream}
        </button>
      </fieldset>
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
    </>
  )
}
