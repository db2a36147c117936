/** Changing a label: its name, language, meaning, parent and other names; merging it into another. */

import { type FormEvent, type ReactNode, useId, useState } from "react";
import { labelApi } from "../api/labels";
import type { LabelDetails, LabelEditRequest } from "../api/types";
import { api } from "../api/client";
import { count } from "../base/format";
import { LabelInput } from "../base/label-input";
import { ask } from "../base/router";
import { Icon } from "../base/ui";
import { change } from "./work";
import { spoken } from "./words";

/** What the form starts from: a new form is made when it changes, and what is being typed stays when other things do. */
export function valuesOf({ name, language, wordnet, parent }: LabelDetails): { name: string; language: string; wordnet: string; parent: string } {
  return { name, language, wordnet, parent: parent ?? "" };
}

export function EditForm({ label }: { label: LabelDetails }): ReactNode {
  const before = valuesOf(label);
  const [now, setNow] = useState(before);
  const [refused, setRefused] = useState<string | null>(null);
  const edits = Object.fromEntries(
    Object.entries(now).filter(([key, value]) => value.trim() !== before[key as keyof typeof before]),
  ) as LabelEditRequest;
  const none = Object.keys(edits).length === 0;
  const set = (part: Partial<typeof before>): void => setNow((old) => ({ ...old, ...part }));
  const save = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setRefused(await change(labelApi.edit(label.id, edits), `Changed “${label.name}”`));
  };
  return (
    <form className="card label-edit" aria-label="Edit" onSubmit={(event) => void save(event)}>
      <h3>Edit</h3>
      <Text name="Name" value={now.name} most={500} onChange={(name) => set({ name })} />
      <div className="pair">
        <Text name="Language, such as en" value={now.language} most={35} onChange={(language) => set({ language })} />
        <Text name="WordNet id" value={now.wordnet} most={20} onChange={(wordnet) => set({ wordnet })} />
      </div>
      <div className="field">
        <span>Below</span>
        <LabelInput
          name="Below which label"
          placeholder="Below none"
          value={now.parent}
          onChange={(parent) => set({ parent })}
          onPick={(parent) => set({ parent })}
        />
      </div>
      <Refused told={refused} />
      <p className="actions">
        <button type="button" disabled={none} onClick={() => setNow(before)}>
          Reset
        </button>
        <button type="submit" className="primary" disabled={none || !now.name.trim()}>
          Save
        </button>
      </p>
      <p className="quiet">The old name stays another name of it.</p>
    </form>
  );
}

export function MergeForm({ label }: { label: LabelDetails }): ReactNode {
  const [into, setInto] = useState("");
  const [refused, setRefused] = useState<string | null>(null);
  const merge = async (): Promise<void> => {
    const name = into.trim();
    const hits = (await api.labels(name, 20)).labels;
    const target = hits.find((hit) => hit.name === name) ?? hits.find((hit) => hit.synonym === name);
    if (!target) {
      setRefused(`There is no label “${name}”; choose one of the list.`);
      return;
    }
    const said = await change(labelApi.merge([label.id], target.id), `Merged “${label.name}” into “${target.name}”`, () =>
      ask({ label: target.id }, { replace: true }),
    );
    setRefused(said);
  };
  return (
    <section className="card label-merge" aria-label="Merge">
      <h3>Merge into another</h3>
      <div className="pair">
        <LabelInput
          name="Merge into"
          placeholder="The label that stays"
          value={into}
          onChange={setInto}
          onPick={setInto}
          free
        />
        <button
          type="button"
          disabled={!into.trim()}
          onClick={() => void merge().catch((error: unknown) => setRefused((error as Error).message))}
        >
          Merge
        </button>
      </div>
      <Refused told={refused} />
      <p className="quiet">
        Its tags ({count(label.items, "picture")}) and names go to the other label; “{label.name}” finds that one from
        then on.
      </p>
    </section>
  );
}

/** Other names, by language. */
export function Names({ label, mayWrite }: { label: LabelDetails; mayWrite: boolean }): ReactNode {
  const [name, setName] = useState("");
  const [language, setLanguage] = useState("");
  const [refused, setRefused] = useState<string | null>(null);
  const tongues = [...new Set(label.names.map((one) => one.language))];
  const save = async (edits: LabelEditRequest, told: string): Promise<void> => {
    setRefused(await change(labelApi.edit(label.id, edits), told));
  };
  return (
    <section className="card" aria-label="Other names">
      <h3>Other names</h3>
      {tongues.length === 0 && <p className="quiet">None.</p>}
      {tongues.map((tongue) => (
        <div key={tongue} className="names-of">
          <small>{spoken(tongue) || "no language told"}</small>
          <ul className="chips">
            {label.names
              .filter((one) => one.language === tongue)
              .map((one) => (
                <li key={one.name} className="chip still">
                  {one.name}
                  {mayWrite && (
                    <button
                      type="button"
                      className="plain"
                      aria-label={`No longer call it ${one.name}`}
                      onClick={() => void save({ remove: [one.name] }, `“${label.name}” is no longer called “${one.name}”`)}
                    >
                      <Icon name="close" />
                    </button>
                  )}
                </li>
              ))}
          </ul>
        </div>
      ))}
      {mayWrite && (
        <form
          className="add-name"
          onSubmit={(event) => {
            event.preventDefault();
            void save({ add: [{ name, language }] }, `“${label.name}” is also called “${name.trim()}”`);
          }}
        >
          <Text name="Another name" value={name} most={500} onChange={setName} />
          <Text name="Language" value={language} most={35} onChange={setLanguage} />
          <button type="submit" disabled={!name.trim()}>
            Add
          </button>
        </form>
      )}
      <Refused told={refused} />
    </section>
  );
}

interface TextProps {
  name: string;
  value: string;
  most: number;
  onChange: (value: string) => void;
}

function Text({ name, value, most, onChange }: TextProps): ReactNode {
  const id = useId();
  return (
    <label className="field" htmlFor={id}>
      <span>{name}</span>
      <input
        id={id}
        type="text"
        value={value}
        maxLength={most}
        autoComplete="off"
        onChange={(event) => onChange(event.target.value)}
      />
    </label>
  );
}

function Refused({ told }: { told: string | null }): ReactNode {
  return told && <p className="refused" role="alert">{told}</p>;
}
