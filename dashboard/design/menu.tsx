// A button that opens a menu: a popover with the keys of the ARIA pattern of a menu button.
import type { IconNode } from 'lucide'
import type { ComponentChildren } from 'preact'
import { Icon } from './icon.tsx'
import { CheckIcon } from './icons.ts'
import { usePopover } from './use-popover.ts'

export type MenuItem = {
  label: string
  icon?: IconNode
  isDanger?: boolean
  /** The item is one of several choices. */
  isChecked?: boolean
} & ({ href: string } | { onSelect(): void })

export type MenuProps = {
  /** The name of the button. */
  label: string
  class?: string
  /** What the button shows. */
  children: ComponentChildren
  /** Above the items. */
  head?: ComponentChildren
  /** Separated by lines. Empty groups are omitted. */
  groups: readonly (readonly MenuItem[])[]
}

export function Menu({ label, class: name = 'quiet', children, head, groups }: MenuProps) {
  const listItems = () => [
    ...(popover.panelRef.current?.querySelectorAll<HTMLElement>('[role^="menuitem"]') ?? []),
  ]
  const popover = usePopover(() => listItems()[0]?.focus())
  const { isOpen, buttonRef, panelRef, close } = popover
  function onKeyDown(event: KeyboardEvent) {
    const items = listItems()
    const index = items.indexOf(document.activeElement as HTMLElement)
    const target = {
      ArrowDown: items[(index + 1) % items.length],
      ArrowUp: items.at(index <= 0 ? -1 : index - 1),
      Home: items[0],
      End: items.at(-1),
    }[event.key]
    const found = target ?? findByLetter([...items.slice(index + 1), ...items], event.key)
    if (event.key === 'Tab') close()
    if (found === undefined) return
    event.preventDefault()
    found.focus()
  }
  return (
    <>
      <button
        ref={buttonRef}
        type="button"
        class={name}
        aria-haspopup="menu"
        aria-label={label}
        title={label}
        {...popover.button}
        onKeyDown={(event) => {
          if (event.key !== 'ArrowDown') return
          event.preventDefault()
          panelRef.current?.showPopover()
        }}
      >
        {children}
      </button>
      <div
        ref={panelRef}
        role="menu"
        tabIndex={-1}
        class="menu-list"
        aria-label={label}
        {...popover.panel}
        onKeyDown={onKeyDown}
      >
        {isOpen.value && (
          <>
            {head !== undefined && <p class="menu-head">{head}</p>}
            {groups
              .filter((group) => group.length > 0)
              .map((group, index) => (
                <>
                  {index > 0 && <hr />}
                  {group.map((item) => (
                    <Item key={item.label} item={item} close={close} />
                  ))}
                </>
              ))}
          </>
        )}
      </div>
    </>
  )
}

const findByLetter = (items: readonly HTMLElement[], key: string): HTMLElement | undefined =>
  key.length === 1 && key !== ' '
    ? items.find((item) => item.textContent?.toLowerCase().startsWith(key.toLowerCase()))
    : undefined

function Item({ item, close }: { item: MenuItem; close(): void }) {
  const { label, icon, isDanger = false, isChecked } = item
  const content = (
    <>
      {isChecked !== undefined ? <Icon of={CheckIcon} /> : icon && <Icon of={icon} />}
      {label}
    </>
  )
  if ('href' in item)
    return (
      <a role="menuitem" tabIndex={-1} href={item.href} onClick={close}>
        {content}
      </a>
    )
  const { onSelect } = item
  return (
    <button
      type="button"
      {...(isChecked === undefined
        ? { role: 'menuitem' }
        : { role: 'menuitemradio', 'aria-checked': isChecked })}
      tabIndex={-1}
      class={isDanger ? 'danger' : ''}
      onClick={() => {
        close()
        onSelect()
      }}
    >
      {content}
    </button>
  )
}
