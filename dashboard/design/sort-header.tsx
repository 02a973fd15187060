// The head of a column that sorts its table.
import { Icon } from './icon.tsx'
import { ArrowDownIcon, ArrowUpIcon } from './icons.ts'

export type SortHeaderProps = {
  label: string
  /** Of the column, if the table is sorted by it. */
  direction: 'ascending' | 'descending' | undefined
  onSort(): void
}

export const SortHeader = ({ label, direction, onSort }: SortHeaderProps) => (
  <th scope="col" aria-sort={direction}>
    <button type="button" class="sort" onClick={onSort}>
      {label}
      {direction && <Icon of={direction === 'ascending' ? ArrowUpIcon : ArrowDownIcon} size={12} />}
    </button>
  </th>
)
