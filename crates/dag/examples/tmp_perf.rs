//! tmp
use ebbtide_dag::*;
use ebbtide_lifecycle::time::ThreadTimer;
use ebbtide_lifecycle::wait::block_on;
use ebbtide_offload::Pool;
use std::time::Instant;
#[derive(Clone, Copy)]
enum K {
    Inline,
    Async,
    Cpu,
}
fn add(g: &mut Graph<()>, k: K, name: String, ins: Vec<Handle<u64>>) -> Handle<u64> {
    fn sum(v: &[Input<'_, u64>]) -> u64 {
        v.iter().map(|x| **x).sum::<u64>()
    }
    match (k, ins.len()) {
        (K::Inline, 0) => g.inline(name, (), |_, ()| Ok(1)),
        (K::Inline, 1) => g.inline(name, ins[0], |_, x| Ok(*x + 1)),
        (K::Inline, 3) => g.inline(name, [ins[0], ins[1], ins[2]], |_, x| Ok(sum(&x))),
        (K::Inline, _) => g.inline(name, ins, |_, x| Ok(sum(&x))),
        (K::Async, 0) => g.future(name, (), |_, ()| async { Ok(1) }),
        (K::Async, 1) => g.future(name, ins[0], |_, x| async move { Ok(*x + 1) }),
        (K::Async, 3) => g.future(name, [ins[0], ins[1], ins[2]], |_, x| async move { Ok(sum(&x)) }),
        (K::Async, _) => g.future(name, ins, |_, x| async move { Ok(sum(&x)) }),
        (K::Cpu, 0) => g.cpu(name, (), |_, ()| Ok(1)),
        (K::Cpu, 1) => g.cpu(name, ins[0], |_, x| Ok(*x + 1)),
        (K::Cpu, 3) => g.cpu(name, [ins[0], ins[1], ins[2]], |_, x| Ok(sum(&x))),
        (K::Cpu, _) => g.cpu(name, ins, |_, x| Ok(sum(&x))),
    }
}
fn main() {
    let pool = Pool::builder().cpu_threads(2).start().unwrap();
    let timer = ThreadTimer::start().unwrap();
    for (kn, k) in [("inline", K::Inline), ("async", K::Async), ("cpu", K::Cpu)] {
        for shape in ["chain", "fan", "layered"] {
            let mut g = Graph::<()>::new(shape);
            let t = Instant::now();
            let out = match shape {
                "chain" => {
                    let mut h = add(&mut g, k, "0".into(), vec![]);
                    for i in 1..1000 {
                        h = add(&mut g, k, format!("{i}"), vec![h]);
                    }
                    vec![h]
                }
                "fan" => {
                    let h = add(&mut g, k, "0".into(), vec![]);
                    let m: Vec<_> = (0..1000).map(|i| add(&mut g, k, format!("m{i}"), vec![h])).collect();
                    vec![add(&mut g, k, "z".into(), m)]
                }
                _ => {
                    let mut l: Vec<_> = (0..100).map(|i| add(&mut g, k, format!("0/{i}"), vec![])).collect();
                    for r in 1..100 {
                        l = (0..100)
                            .map(|i| {
                                add(
                                    &mut g,
                                    k,
                                    format!("{r}/{i}"),
                                    vec![l[i], l[(i + 1) % 100], l[(i + 7) % 100]],
                                )
                            })
                            .collect();
                    }
                    l
                }
            };
            let n = g.len();
            let plan = g.plan(out).unwrap();
            let compiled = t.elapsed().as_nanos() as f64 / n as f64;
            let e = plan.bind(Env::new(timer.clone()).pool(&pool)).unwrap();
            let mut times = vec![];
            let only = std::env::args().nth(1);
            if only.as_ref().is_some_and(|o| *o != format!("{kn}/{shape}")) {
                continue;
            }
            for _ in 0..(if only.is_some() { 3000 } else { 200 }) {
                let t = Instant::now();
                block_on(e.run(())).unwrap();
                times.push(t.elapsed().as_nanos() as f64 / n as f64);
            }
            times.sort_by(f64::total_cmp);
            println!(
                "{kn}/{shape}: {n} nodes, median {:.1} ns/node, q1 {:.1}, compile {:.0} ns/node",
                times[times.len() / 2],
                times[times.len() / 4],
                compiled
            );
        }
    }
}
