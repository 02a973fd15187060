// The command palette: a dialog with a combobox that goes to boxes and pages, and runs actions.

import { useSignal } from '@preact/signals'
import { useEffect, useId, useLayoutEffect } from 'preact/hooks'
import type { BoxwoodError } from '../../client/http/errors.ts'
import { toBoxwoodError } from '../api/errors.ts'
import { boxes, getClient, session, signOut } from '../data/live.ts'
import { navigate } from '../data/navigation.ts'
import { findPaletteItems, listPaletteItems, type PaletteItem } from '../data/palette.ts'
import { showHidden } from '../data/visible-text.ts'
import { Icon } from '../design/icon.tsx'
import { SearchIcon } from '../design/icons.ts'
import { Problem } from './problem.tsx'
import { useModal } from './use-modal.ts'

const IS_MAC = /Mac|iPhone|iPad/.test(navigator.userAgent)
const SHORTCUT = IS_MAC ? 'Cmd-K' : 'Ctrl-K'

/** The button that opens the palette, and its shortcut. */
export function CommandPalette() {
  const isOpen = useSignal(false)
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const isShortcut = event.key.toLowerCase() === 'k' && !event.altKey && !event.shiftKey
      if (!isShortcut || event.ctrlKey === event.metaKey) return
      // In a terminal, Ctrl-K belongs to the shell.
      const isInTerminal = event.target instanceof Element && event.target.closest('.xterm') !== null
      if ((event.ctrlKey && isInTerminal) || document.querySelector('dialog[open]') !== null) return
      event.preventDefault()
      isOpen.value = true
    }
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  }, [])
  return (
    <>
      <button
        type="button"
        class="search-button"
        aria-haspopup="dialog"
        onClick={() => {
          isOpen.value = true
        }}
      >
        <Icon of={SearchIcon} />
        <span>Go to…</span>
        <kbd>{SHORTCUT}</kbd>
      </button>
      {isOpen.value && (
        <Palette
          onClose={() => {
            isOpen.value = false
          }}
        />
      )}
    </>
  )
}

function Palette({ onClose }: { onClose(): void }) {
  const id = useId()
  const dialog = useModal(onClose)
  const text = useSignal('')
  const index = useSignal(0)
  const error = useSignal<BoxwoodError | null>(null)
  const all = session.value === null ? [] : listPaletteItems(boxes.value ?? new Map(), session.value)
  const items = findPaletteItems(all, text.value)
  const selected = items[Math.min(index.value, items.length - 1)]
  useLayoutEffect(() => {
    document.getElementById(`${id}-${selected?.id}`)?.scrollIntoView({ block: 'nearest' })
  }, [selected?.id])

  async function choose(item: PaletteItem | undefined) {
    if (item === undefined) return
    error.value = null
    try {
      await runItem(item)
      // The user may have closed this dialog, and opened the next one.
      if (dialog.current !== null) onClose()
    } catch (reason) {
      error.value = toBoxwoodError(reason)
    }
  }
  function onKeyDown(event: KeyboardEvent) {
    const last = items.length - 1
    const current = Math.min(index.value, last)
    const next = {
      ArrowDown: current === last ? 0 : current + 1,
      ArrowUp: current <= 0 ? last : current - 1,
      PageDown: Math.min(current + 10, last),
      PageUp: Math.max(current - 10, 0),
    }[event.key]
    if (event.key === 'Enter') void choose(selected)
    else if (next === undefined) return
    else index.value = next
    event.preventDefault()
  }
  return (
    <dialog ref={dialog} class="palette" aria-label="Go to a box or a page, or run an action">
      <input
        role="combobox"
        aria-label="Box, page or action"
        aria-expanded="true"
        aria-controls={`${id}-list`}
        aria-autocomplete="list"
        aria-activedescendant={selected && `${id}-${selected.id}`}
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        value={text}
        onInput={({ currentTarget }) => {
          text.value = currentTarget.value
          index.value = 0
        }}
        onKeyDown={onKeyDown}
      />
      <div role="listbox" id={`${id}-list`} aria-label="Matches" tabIndex={-1}>
        {items.map((item) => (
          <div
            key={item.id}
            id={`${id}-${item.id}`}
            role="option"
            aria-selected={item === selected}
            tabIndex={-1}
            onClick={() => void choose(item)}
            onKeyDown={onKeyDown}
          >
            {showHidden(item.label)} <small>{item.hint}</small>
          </div>
        ))}
      </div>
      <p role="status">{items.length === 0 && 'Nothing matches.'}</p>
      <Problem error={error.value} />
      <p>
        <small>
          <kbd>{SHORTCUT}</kbd> opens this list on every page. <kbd>↑</kbd> <kbd>↓</kbd> choose,{' '}
          <kbd>Enter</kbd> opens, <kbd>Esc</kbd> closes.
        </small>
      </p>
    </dialog>
  )
}

async function runItem(item: PaletteItem): Promise<void> {
  if ('target' in item) {
    navigate(item.target)
    return
  }
  const client = getClient()
  if (item.action === 'wake') await client.wakeBox(item.boxId)
  else if (item.action === 'suspend') await client.suspendBox(item.boxId)
  else await signOut()
}
