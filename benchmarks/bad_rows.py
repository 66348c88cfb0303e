import numpy as np, sys, warnings
import superarm as sa
def table(n,seed,noise="normal"):
    r=np.random.default_rng(seed)
    a=r.uniform(0,5,n); 
    N=r.normal(size=(n,4)) if noise=="normal" else r.standard_cauchy((n,4))
    X=np.column_stack([a,N]).astype(np.float32); y=np.round(a).astype(np.int64)
    return X,y
def learner(seed,d=5,**kw): return sa.SetLogit(n_labels=6,n_features=d,set_size=2,seed=seed,**kw)
def blocks(l,X,y,size=2000):
    return [1-l.run(X[i:i+size],y[i:i+size])[2]/len(X[i:i+size]) for i in range(0,len(X),size)]
def one(v,seed=0,**kw):
    X,y=table(17000,seed); l=learner(seed,**kw)
    l.run(X[:5000],y[:5000]); before=1-l.run(X[5000:7000],y[5000:7000])[2]/2000
    x=X[7000].copy(); x[0]=v
    try: l.update(l.decide(x),hit=False)
    except Exception as e: return before,[str(type(e).__name__)]
    return before,blocks(l,X[7001:],y[7001:])
def sentinels(seed,share,**kw):
    X,y=table(30000,seed); r=np.random.default_rng(seed+100); bad=r.random(len(X))<share; X[bad,0]=-999
    l=learner(seed,**kw); l.run(X[:10000],y[:10000])
    hits=[]; 
    for i in range(10000,14000):
        d=l.decide(X[i]); h=int(y[i]) in d.labels; l.update(d,hit=h)
        if not bad[i]: hits.append(h)
    return np.mean(hits)
def tails(seed,noise,**kw):
    X,y=table(30000,seed,noise); l=learner(seed,**kw); l.run(X[:20000],y[:20000]); return 1-l.run(X[20000:],y[20000:])[2]/10000
def units(seed,f,**kw):
    X,y=table(60000,seed); X[30000:]*=np.float32(f); l=learner(seed,**kw); b=blocks(l,X,y,5000); return b[5],b[6:9]
if __name__=="__main__":
    for v in (1e2,999,1e4,1e6,1e10,1e15):
        b=[one(v,s) for s in range(2)]; print(f"one {v:g}: before {b[0][0]:.3f} after", [np.round(x[1][:3],3).tolist() if not isinstance(x[1][0],str) else x[1] for x in b],flush=True)
    print("sentinels 0, 1%:",[round(float(np.mean([sentinels(s,q) for s in range(3)])),3) for q in (0,.01)],flush=True)
    print("cauchy:",[round(float(np.mean([tails(s,q) for s in range(2)])),3) for q in ("normal","cauchy")],flush=True)
    for f in (1000,1e-3): print("units",f,[ [round(float(v),3) for v in (units(s,f)[0],*units(s,f)[1])] for s in range(1)],flush=True)
